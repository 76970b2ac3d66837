import { Link, useSearchParams } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl, CopyableText } from '../../components/copy.tsx'
import { type Filter, FilterBar, queryOf } from '../../components/filters.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Section } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { eventTypes } from '../../generated/events.ts'
import style from './feed.module.css'

const filters: readonly Filter[] = [
  { kind: 'text', name: 'entity', label: 'About: user:id, role:id, …' },
  {
    ...{ kind: 'choice', name: 'types', label: 'Type' },
    options: Object.fromEntries(eventTypes.map(({ type }) => [type, type])),
  },
  { kind: 'text', name: 'organizationIds', label: 'In organizations: ids' },
  { kind: 'time', name: 'since', label: 'From' },
]

const pageSize = 25

/** The events that happened, oldest first, as a reader of the feed gets them. */
export const Feed = () => {
  const [search, setSearch] = useSearchParams()
  const after = search.get('after') ?? undefined
  const input = { query: { ...queryOf(filters, search), limit: pageSize, ...(after && { after, since: undefined }) } }
  const { data, error } = useRead('readEvents', input)
  const next = () =>
    setSearch((before) => {
      const to = new URLSearchParams(before)
      to.set('after', data!.body.cursor)
      return to
    })
  const change: typeof setSearch = (update, options) =>
    setSearch((before) => {
      const to = new URLSearchParams(typeof update === 'function' ? (update(before) as URLSearchParams) : before)
      to.delete('after')
      return to
    }, options)
  const events = data?.body.events
  return (
    <>
      <FilterBar filters={filters} search={search} onChange={change} />
      <ProblemNotice error={error} />
      <Section title="What happened" actions={<CopyAsCurl operation="readEvents" input={input} />}>
        {!data && !error && <Loading />}
        {events?.length === 0 && <p className={style.nothing}>No event of the last 14 days is like that.</p>}
        <ol className={style.events}>
          {events?.map(({ id, event, createdAt, ...rest }) => (
            <li key={id}>
              <details>
                <summary>
                  <b>{event}</b> <RelativeTime at={Date.parse(createdAt)} />
                </summary>
                <CopyableText label={event} text={JSON.stringify({ id, event, createdAt, ...rest }, null, 2)} />
                <Link href={`/events/types/${event}`}>About {event}</Link>
              </details>
            </li>
          ))}
        </ol>
        {data?.body.more && (
          <div>
            <Button icon="right" onPress={next}>
              Later ones
            </Button>
          </div>
        )}
      </Section>
    </>
  )
}
