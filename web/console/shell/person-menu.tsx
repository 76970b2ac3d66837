import { useRef, useState } from 'react'
import { Button as AriaButton } from 'react-aria-components/Button'
import { nameOfPerson, useSession } from '../api/session.tsx'
import { fetched } from '../components/fetched.ts'
import { Icon } from '../design/icon.tsx'
import style from './person-menu.module.css'

/** Menus weigh a fifth of the first page, which shows none. */
const PersonMenuItems = fetched(async () => ({ default: (await import('./person-menu-items.tsx')).PersonMenuItems }))

/** Who is signed in, as what, and how they leave. */
export const PersonMenu = ({ onHelp, onSaid }: { onHelp(): void; onSaid(): void }) => {
  const { user, roles } = useSession()
  const [isOpen, setIsOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const name = nameOfPerson(user)
  return (
    <>
      <AriaButton
        ref={button}
        className={style.person!}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onPress={() => setIsOpen(true)}
      >
        <span className={style.letter} aria-hidden="true">
          {name.slice(0, 1).toUpperCase()}
        </span>
        <span className={style.who}>
          <b>
            <bdi>{name}</bdi>
          </b>
          <span className={style.roles}>{roles.join(', ')}</span>
        </span>
        <Icon name="down" size={16} />
      </AriaButton>
      {isOpen && <PersonMenuItems {...{ button, onHelp, onSaid }} onClose={() => setIsOpen(false)} />}
    </>
  )
}
