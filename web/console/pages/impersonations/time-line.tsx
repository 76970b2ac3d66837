import { useSearchParams } from 'wouter'
import { FilterBar } from '../../components/filters.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { exactTime } from '../../components/time.tsx'
import { Icon } from '../../design/icon.tsx'
import type { Calls } from '../../generated/api.ts'
import { type Moment, momentsOf } from './moments.tsx'
import type { RequestsOfSession } from './requests-of-session.ts'
import style from './time-line.module.css'

export type TimeLine = Calls['getImpersonationTimeline']['answer']

const shown = {
  session: 'The session itself',
  requests: 'Requests',
  changes: 'Changes',
  webhooks: 'Events and webhooks',
}

interface TimeLineProps {
  timeline: TimeLine
  requests: RequestsOfSession
  nameOf(id: string): string
}

/** What happened, in the order of time: of the issuer, of every gateway, of every hook. */
export const TimeLineSection = ({ timeline, requests, nameOf }: TimeLineProps) => {
  const [search, setSearch] = useSearchParams()
  const all = momentsOf(timeline.entries, requests.decisions, nameOf)
  const only = search.get('show')
  const moments = all.filter(({ about }) => !only || about === only)
  return (
    <Section title="Time line" lead={`${all.length.toLocaleString('en')} entries, oldest first.`}>
      <ProblemNotice error={requests.error} />
      {requests.missing.map(({ gateway, because }) => (
        <Notice key={gateway} kind="warn">
          <p>
            <strong>{gateway}</strong> does not answer, so its requests are missing here. {because}
          </p>
        </Notice>
      ))}
      {requests.more && <Notice>Gateways keep more requests of this session than are shown: the last ones are.</Notice>}
      {timeline.more && <Notice>There are more changes than are shown: the first thousand are.</Notice>}
      <FilterBar
        filters={[{ kind: 'choice', name: 'show', label: 'Show', options: shown }]}
        search={search}
        onChange={setSearch}
      />
      {moments.length === 0 && <p>Nothing of that kind happened.</p>}
      <ol className={style.line} aria-label="Time line">
        {moments.map((moment) => (
          <Row key={moment.key} moment={moment} />
        ))}
      </ol>
    </Section>
  )
}

const clock = new Intl.DateTimeFormat('en-GB', {
  ...({ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 } as const),
})

const Row = ({ moment: { at, icon, tone, title, more } }: { moment: Moment }) => (
  <li data-tone={tone}>
    <time dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {clock.format(at)}
    </time>
    <span className={style.sign}>
      <Icon name={icon} size={16} />
    </span>
    <div className={style.what}>
      <p>{title}</p>
      {more}
    </div>
  </li>
)
