import { memo, useRef } from 'react'
import { Link } from 'wouter'
import { useKey } from '../../components/keys.ts'
import linked from '../../components/linked-rows.module.css'
import { Badge } from '../../components/page.tsx'
import { type DecisionRow, verdictKinds } from './decision-row.ts'
import style from './live.module.css'

interface DecisionListProps {
  /** Newest first. */
  rows: readonly DecisionRow[]
  /** Whether to say which gateway it was. */
  areMany: boolean
  /** Somebody points at a row, or has reached one: nothing may move now. */
  onLook?(isLooking: boolean): void
}

/** Requests, a line each; a line leads to why it ended so. */
export const DecisionList = memo(({ rows, areMany, onLook }: DecisionListProps) => {
  const list = useRef<HTMLOListElement>(null)
  const step = (by: number) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('a[data-row]') ?? [])]
    links[Math.min(Math.max(links.indexOf(document.activeElement as HTMLElement) + by, 0), links.length - 1)]?.focus()
  }
  useKey({ keys: 'j', label: 'Next row' }, () => step(1))
  useKey({ keys: 'k', label: 'Row before' }, () => step(-1))
  return (
    <ol
      ref={list}
      className={`${linked.frame} ${style.list}`}
      aria-label="Requests"
      onPointerEnter={({ pointerType }) => pointerType === 'mouse' && onLook?.(true)}
      onPointerLeave={() => onLook?.(list.current?.contains(document.activeElement) ?? false)}
      onFocus={() => onLook?.(true)}
      onBlur={({ relatedTarget }) => onLook?.(list.current?.contains(relatedTarget) ?? false)}
    >
      {rows.map((row) => (
        <Row key={row.key} row={row} areMany={areMany} />
      ))}
    </ol>
  )
})

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const clockOf = (timestamp: string): string => `${clock.format(Date.parse(timestamp))}.${timestamp.slice(20, 23)}`

const Row = memo(({ row, areMany }: { row: DecisionRow; areMany: boolean }) => {
  const { request, timestamp, verdict, status, what, route, code, subject, actor, duration, gateway } = row
  return (
    <li data-verdict={verdict}>
      <time dateTime={timestamp}>{clockOf(timestamp)}</time>
      <Badge kind={verdictKinds[verdict]}>{status === 0 ? 'gone' : status}</Badge>
      <Link href={`/why/${encodeURIComponent(request)}`} className={`${linked.link} ${style.link}`} data-row="">
        {what}
      </Link>
      <span>{code}</span>
      <span>{route}</span>
      <span>
        {subject}
        {actor !== undefined && ` by ${actor}`}
      </span>
      <span className={style.figure}>
        {duration.toFixed(1)} ms{areMany && ` · ${gateway}`}
      </span>
    </li>
  )
})
