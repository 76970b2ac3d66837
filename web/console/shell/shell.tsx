import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Button } from '../components/button.tsx'
import { fetched } from '../components/fetched.ts'
import { listenForKeys, useKey } from '../components/keys.ts'
import { Announcements } from '../components/notice.tsx'
import { Icon } from '../design/icon.tsx'
import type { ConsolePage } from './console-page.ts'
import { PersonMenu } from './person-menu.tsx'
import { Rail } from './rail.tsx'
import style from './shell.module.css'
import { SignedOut } from './signed-out.tsx'

const Palette = fetched(async () => ({ default: (await import('./palette.tsx')).Palette }))
const Help = fetched(async () => ({ default: (await import('./help.tsx')).Help }))
const Said = fetched(async () => ({ default: (await import('./said.tsx')).Said }))

/** What is around every page: navigation, palette, help, and what is said in passing. */
export const Shell = ({ pages, children }: { pages: readonly ConsolePage[]; children: ReactNode }) => {
  const [overlay, setOverlay] = useState<'palette' | 'help' | 'said' | 'rail'>()
  const [location, navigate] = useLocation()
  const main = useRef<HTMLElement>(null)
  const close = () => setOverlay(undefined)
  useFocusOnPage(location, main)
  useEffect(listenForKeys, [])
  useKey({ keys: 'Ctrl K', label: 'Search everything', group: 'Everywhere' }, () => setOverlay('palette'))
  useKey({ keys: '?', label: 'This help', group: 'Everywhere' }, () => setOverlay('help'))
  return (
    <div className={style.shell} data-rail={overlay === 'rail' || undefined}>
      <a href="#content" className={style.skip}>
        To the content
      </a>
      {pages.map(
        ({ key, path, title }) => key && <GoKey key={key} letter={key} title={title} go={() => navigate(path)} />,
      )}
      <header className={style.bar}>
        <Button
          kind="plain"
          icon="menu"
          label={overlay === 'rail' ? 'Close the navigation' : 'Open the navigation'}
          onPress={() => setOverlay(overlay === 'rail' ? undefined : 'rail')}
        />
        <Link href="/" className={style.mark}>
          <Mark /> Console
        </Link>
        <Button kind="plain" icon="search" label="Search everything" onPress={() => setOverlay('palette')} />
      </header>
      <aside className={style.rail}>
        <Link href="/" className={style.mark} onClick={close}>
          <Mark /> Console
        </Link>
        <button type="button" className={style.find} onClick={() => setOverlay('palette')}>
          <Icon name="search" size={16} />
          <span>Search</span>
          <kbd>Ctrl K</kbd>
        </button>
        <Rail pages={pages} onGo={close} />
        <PersonMenu onHelp={() => setOverlay('help')} onSaid={() => setOverlay('said')} />
      </aside>
      <main id="content" ref={main} className={style.main} tabIndex={-1}>
        {children}
      </main>
      {overlay === 'palette' && <Palette pages={pages} onClose={close} />}
      {overlay === 'help' && <Help onClose={close} />}
      {overlay === 'said' && <Said onClose={close} />}
      <SignedOut />
      <Announcements />
    </div>
  )
}

const Mark = () => (
  <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="9" className={style.ground} />
    <path
      d="M21.5 11.2c-.9-1.9-2.9-3-5.4-3-3.1 0-5.3 1.6-5.3 4 0 5.6 10.6 2.6 10.6 8 0 2.4-2.2 4-5.4 4-2.7 0-4.8-1.2-5.6-3.3"
      fill="none"
      strokeWidth="2.8"
      strokeLinecap="round"
      className={style.letter}
    />
  </svg>
)

const GoKey = ({ letter, title, go }: { letter: string; title: string; go(): void }) => {
  useKey({ keys: `g then ${letter}`, label: title, group: 'Go to' }, go)
  return null
}

/** On another page people who hear it are told where they are: the focus goes to its beginning. */
const useFocusOnPage = (location: string, main: React.RefObject<HTMLElement | null>) => {
  const before = useRef(location)
  useEffect(() => {
    if (before.current === location) return
    before.current = location
    scrollTo(0, 0)
    main.current?.focus({ preventScroll: true })
  }, [location, main])
}
