import { type RefObject, useState } from 'react'
import { Header } from 'react-aria-components/Header'
import { Menu, MenuItem, MenuSection } from 'react-aria-components/Menu'
import { Popover } from 'react-aria-components/Popover'
import { callConsole } from '../api/call.ts'
import { useSession } from '../api/session.tsx'
import { Icon, type IconName } from '../design/icon.tsx'
import style from './person-menu.module.css'
import { chooseTheme, currentTheme, type Theme } from './theme.ts'

const themes: readonly { id: Theme; label: string; icon: IconName }[] = [
  { id: 'system', label: 'As the machine', icon: 'half' },
  { id: 'light', label: 'Light', icon: 'sun' },
  { id: 'dark', label: 'Dark', icon: 'moon' },
]

interface PersonMenuItemsProps {
  /** What the menu hangs on. */
  button: RefObject<HTMLButtonElement | null>
  onHelp(): void
  /** To what was said in passing. */
  onSaid(): void
  onClose(): void
}

export const PersonMenuItems = ({ button, onHelp, onSaid, onClose }: PersonMenuItemsProps) => {
  const { version } = useSession()
  const [theme, setTheme] = useState(currentTheme)
  const leave = async () => {
    const { location: to } = await callConsole<{ location: string }>('POST', '/session/end', {})
    location.assign(to)
  }
  return (
    <Popover
      triggerRef={button}
      isOpen
      onOpenChange={(open) => !open && onClose()}
      placement="top start"
      className={style.popover!}
      aria-label="You and this console"
    >
      <Menu
        className={style.menu!}
        aria-label="You and this console"
        autoFocus="first"
        onClose={onClose}
        onAction={(key) => {
          if (key === 'account') window.open('/account', '_blank', 'noopener')
          if (key === 'keys') onHelp()
          if (key === 'said') onSaid()
          if (key === 'leave') void leave()
        }}
      >
        <MenuItem id="account" className={style.item!}>
          <Icon name="member" size={16} /> Your account
        </MenuItem>
        <MenuItem id="keys" className={style.item!}>
          <Icon name="info" size={16} /> Keys of the keyboard
        </MenuItem>
        <MenuItem id="said" className={style.item!}>
          <Icon name="message" size={16} /> What was said
        </MenuItem>
        <MenuSection
          selectionMode="single"
          selectedKeys={[theme]}
          onSelectionChange={(keys) => {
            const [chosen = 'system'] = [...keys] as Theme[]
            chooseTheme(chosen)
            setTheme(chosen)
          }}
        >
          <Header className={style.header!}>Theme</Header>
          {themes.map(({ id, label, icon }) => (
            <MenuItem key={id} id={id} className={style.item!} textValue={label}>
              <Icon name={icon} size={16} /> {label}
            </MenuItem>
          ))}
        </MenuSection>
        <MenuSection>
          <Header className={style.header!}>Surrogate {version}</Header>
          <MenuItem id="leave" className={style.item!} textValue="Sign out">
            <Icon name="leave" size={16} /> Sign out
          </MenuItem>
        </MenuSection>
      </Menu>
    </Popover>
  )
}
