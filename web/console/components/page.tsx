import { Fragment, type ReactNode, useEffect, useRef } from 'react'
import { Link } from 'wouter'
import { Icon } from '../design/icon.tsx'
import { isolated } from './isolated.tsx'
import style from './page.module.css'

/** What a page gets: the parameters of its address. */
export interface PageProps {
  params: Readonly<Record<string, string>>
}

interface PageFrameProps {
  title: string
  /** One sentence: what it is, for whoever sees it for the first time. */
  lead?: ReactNode
  /** The page that this one belongs to. */
  above?: { title: string; path: string }
  actions?: ReactNode
  children?: ReactNode
}

export const Page = ({ title, lead, above, actions, children }: PageFrameProps) => {
  useEffect(() => {
    document.title = `${title} · Console`
  }, [title])
  return (
    <div className={style.page}>
      <header className={style.head}>
        <div className={style.titles}>
          {above && (
            <Link href={above.path} className={style.above}>
              <Icon name="left" size={14} />
              {isolated(above.title)}
            </Link>
          )}
          <h1 tabIndex={-1}>{isolated(title)}</h1>
          {lead && <p className={style.lead}>{lead}</p>}
        </div>
        {actions && <div className={style.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** The parts of an entity, each with an address of its own; where there is little room they move sideways. */
export const Tabs = ({ tabs, current }: { tabs: readonly { title: string; path: string }[]; current: string }) => {
  const nav = useRef<HTMLElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another one is current then
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
  return (
    <nav ref={nav} className={style.tabs} aria-label="Parts">
      {tabs.map(({ title, path }) => (
        <Link key={path} href={path} {...(path === current && { 'aria-current': 'page' })}>
          {title}
        </Link>
      ))}
    </nav>
  )
}

/** `User.Data.Updated`, which breaks at its dots where there is little room. */
export const EventName = ({ name }: { name: string }) =>
  name.split(/(?<=\.)/).map((part) => (
    <Fragment key={part}>
      <wbr />
      <span className={style.part}>{part}</span>
    </Fragment>
  ))

/** A part of a page. */
export const Section = ({
  title,
  lead,
  actions,
  children,
}: {
  title: string
  lead?: ReactNode
  actions?: ReactNode
  children?: ReactNode
}) => (
  <section className={style.section} aria-label={title}>
    <header className={style.head}>
      <div className={style.titles}>
        <h2>{isolated(title)}</h2>
        {lead && <p className={style.lead}>{lead}</p>}
      </div>
      {actions && <div className={style.actions}>{actions}</div>}
    </header>
    {children}
  </section>
)

/** Names and what they are; rows without anything to say are left out. */
export const Facts = ({ facts }: { facts: Readonly<Record<string, ReactNode>> }) => (
  <dl className={style.facts}>
    {Object.entries(facts).map(
      ([name, value]) =>
        value != null && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{isolated(value)}</dd>
          </div>
        ),
    )}
  </dl>
)

/** A word about a state. */
export const Badge = ({
  kind = 'plain',
  children,
}: {
  kind?: 'plain' | 'good' | 'warn' | 'bad'
  children: ReactNode
}) => <span className={`${style.badge} ${style[kind]}`}>{children}</span>

/** While something is fetched: the room that it will take. */
export const Loading = ({ lines = 6 }: { lines?: number }) => (
  <div className={style.loading} role="status" aria-label="Loading">
    {Array.from({ length: lines }, (_, line) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
      <span key={line} />
    ))}
  </div>
)
