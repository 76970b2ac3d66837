import { createContext, type ReactNode, useContext } from 'react'
import { Button as AriaButton } from 'react-aria-components/Button'
import { Tooltip, TooltipTrigger } from 'react-aria-components/Tooltip'
import { Icon, type IconName } from '../design/icon.tsx'
import style from './button.module.css'

/** Why what stands below may not be done; `Allowed` says it, buttons and forms hear it. */
export const RefusalContext = createContext<string | undefined>(undefined)

export interface ButtonProps {
  children?: ReactNode
  icon?: IconName | undefined
  /** `main` is what the page is for; one of them on a page. */
  kind?: 'main' | 'quiet' | 'plain' | 'danger'
  /** Instead of words: what it does, for people who hear the page and as a tip. */
  label?: string
  isPending?: boolean
  isDisabled?: boolean
  type?: 'button' | 'submit'
  autoFocus?: boolean
  onPress?: () => void
}

/** A button; where it may not be used it says why, and can still be reached by the keyboard. */
export const Button = ({ children, icon, kind = 'quiet', label, isPending, onPress, ...rest }: ButtonProps) => {
  const refusal = useContext(RefusalContext)
  const button = (
    <AriaButton
      {...rest}
      type={refusal || isPending ? 'button' : (rest.type ?? 'button')}
      className={`${style.button} ${style[kind]} ${children ? '' : style.square}`}
      {...(label && { 'aria-label': label })}
      {...(refusal && { 'aria-disabled': true, 'data-refused': '' })}
      {...(isPending && { 'aria-disabled': true, 'data-pending': '' })}
      onPress={() => {
        if (!refusal && !isPending) onPress?.()
      }}
    >
      {icon && <Icon name={icon} size={16} />}
      {children}
    </AriaButton>
  )
  const tip = refusal ?? (children ? undefined : label)
  return tip ? <Tipped tip={tip}>{button}</Tipped> : button
}

/** Says more about what it is around, on focus and under the pointer. */
export const Tipped = ({ tip, children }: { tip: string; children: ReactNode }) => (
  <TooltipTrigger delay={300} closeDelay={0}>
    {children}
    <Tooltip className={style.tip} offset={6}>
      {tip}
    </Tooltip>
  </TooltipTrigger>
)
