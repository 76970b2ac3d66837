import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { Autocomplete } from 'react-aria-components/Autocomplete'
import { Dialog } from 'react-aria-components/Dialog'
import { Header } from 'react-aria-components/Header'
import { Input } from 'react-aria-components/Input'
import { Menu, MenuItem, MenuSection } from 'react-aria-components/Menu'
import { Modal, ModalOverlay } from 'react-aria-components/Modal'
import { SearchField } from 'react-aria-components/SearchField'
import { useLocation } from 'wouter'
import { inspecting } from '../api/inspecting.ts'
import { isAllowed } from '../api/operations.ts'
import { type Found, search, shortestSearch } from '../api/search.ts'
import { useSession } from '../api/session.tsx'
import { Icon, type IconName } from '../design/icon.tsx'
import { type ConsolePage, needOf } from './console-page.ts'
import style from './palette.module.css'

/** Somebody who types is not asked for at every letter. */
const pauseMs = 120

/** Pages, what can be made, and everything that has a name or an id. */
export const Palette = ({ pages, onClose }: { pages: readonly ConsolePage[]; onClose(): void }) => {
  const [text, setText] = useState('')
  const [, navigate] = useLocation()
  const { scopes } = useSession()
  const asked = usePaused(text.trim())
  const { data: found = [], isFetching } = useQuery({
    queryKey: ['search', asked],
    queryFn: ({ signal }) => search(asked, signal),
    enabled: asked.length >= shortestSearch,
    placeholderData: (before) => before,
  })
  const shown = pages.filter((page) => isShown(page, text, scopes))
  const isLongEnough = text.trim().length >= shortestSearch
  const entities = isLongEnough ? found : []
  const nothing = !isLongEnough
    ? `No page is called that. With ${shortestSearch} letters everything is searched.`
    : isFetching || asked !== text.trim()
      ? 'Looking…'
      : 'Nothing has that name or id.'
  const go = (path: string) => {
    onClose()
    navigate(path)
  }
  return (
    <ModalOverlay isOpen isDismissable onOpenChange={(open) => !open && onClose()} className={style.veil!}>
      <Modal className={style.modal!}>
        <Dialog className={style.dialog!} aria-label="Search everything">
          <Autocomplete inputValue={text} onInputChange={setText}>
            <SearchField
              className={style.field!}
              aria-label="A page, a name, an address or an id"
              // It would only empty the field at first.
              onKeyDown={(event) => event.key === 'Escape' && onClose()}
            >
              <Icon name="search" />
              <Input ref={focus} dir="auto" placeholder="A page, a name, an address or an id" />
              <kbd>Esc</kbd>
            </SearchField>
            <Menu
              className={style.results!}
              aria-label="What was found"
              onAction={(path) => go(String(path))}
              renderEmptyState={() => <p className={style.nothing}>{nothing}</p>}
            >
              {asksWhy(text, scopes) && <Results title="Requests" rows={[whyRow(text.trim())]} />}
              {entities.length > 0 && <Results title="Found" rows={entities.map(entityRow)} />}
              {shown.length > 0 && <Results title="Pages" rows={shown.map(pageRow)} />}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

/** At once, and however focus came to where it was: `autoFocus` waits when that was by a program. */
const focus = (input: HTMLInputElement | null) => input?.focus()

interface Row {
  path: string
  icon: IconName
  name: string
  detail: ReactNode
}

const entityRow = ({ path, icon, name, kind, detail }: Found): Row => ({
  ...{ path, icon, name },
  detail: detail ? (
    <>
      {kind} · <bdi>{detail}</bdi>
    </>
  ) : (
    kind
  ),
})

const pageRow = ({ path, icon = 'plus', title, group = '' }: ConsolePage): Row => ({
  ...{ path, icon, name: title, detail: group },
})

/** As gateways give them to requests, and show them in their answers. */
const requestId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const asksWhy = (text: string, scopes: readonly string[]): boolean =>
  requestId.test(text.trim()) && isAllowed(inspecting, scopes)

const whyRow = (request: string): Row => ({
  ...{ path: `/why/${request}`, icon: 'why', name: 'Why it ended so', detail: `Request ${request}` },
})

const Results = ({ title, rows }: { title: string; rows: readonly Row[] }) => (
  <MenuSection>
    <Header className={style.header!}>{title}</Header>
    {rows.map(({ path, icon, name, detail }) => (
      <MenuItem key={path} id={path} textValue={name} className={style.row!}>
        <Icon name={icon} />
        <bdi className={style.name}>{name}</bdi>
        <span className={style.detail}>{detail}</span>
      </MenuItem>
    ))}
  </MenuSection>
)

/** Pages that need nothing but their address, and that the person may see. */
const isShown = ({ path, title, words = '', ...page }: ConsolePage, text: string, scopes: readonly string[]) =>
  !path.includes(':') &&
  isAllowed(needOf(page), scopes) &&
  `${title} ${words}`.toLowerCase().includes(text.trim().toLowerCase())

const usePaused = (text: string): string => {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}
