import { useContext } from 'react'
import { Link } from 'wouter'
import { Icon } from '../design/icon.tsx'
import style from './button.module.css'
import { Button, type ButtonProps, RefusalContext } from './button.tsx'

/** Looks like a button and leads to a page; what may not be done there is said here. */
export const LinkButton = ({
  path,
  icon,
  kind = 'quiet',
  children,
}: Pick<ButtonProps, 'icon' | 'kind' | 'children'> & { path: string }) => {
  if (useContext(RefusalContext) !== undefined)
    return (
      <Button icon={icon} kind={kind}>
        {children}
      </Button>
    )
  return (
    <Link href={path} className={`${style.button} ${style[kind]}`}>
      {icon && <Icon name={icon} size={16} />}
      {children}
    </Link>
  )
}
