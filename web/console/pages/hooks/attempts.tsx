import { useRead } from '../../api/queries.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'
import style from './attempts.module.css'

/** As many as there can be of one delivery and a few replays of it. */
const mostShown = 100

/** Every POST of a delivery, side by side, so that what differs is seen. */
export const Attempts = ({ hookId: id, deliveryId }: { hookId: string; deliveryId: string }) => {
  const query = { page: 1, page_size: mostShown }
  const { data, error } = useRead('listHookDeliveryAttempts', { params: { id, deliveryId }, query })
  const rows = data?.body ?? []
  const more = (data?.total ?? rows.length) - rows.length
  return (
    <Section title="Attempts">
      <ProblemNotice error={error} />
      {!data && !error && <Loading lines={3} />}
      {data?.body.length === 0 && <p>None yet.</p>}
      <ol className={style.attempts}>
        {rows.map((attempt, place) => (
          <AttemptCard key={attempt.id} attempt={attempt} before={rows[place - 1]} />
        ))}
      </ol>
      {more > 0 && <p>{more.toLocaleString('en')} more are in the API.</p>}
    </Section>
  )
}

type Attempt = Calls['listHookDeliveryAttempts']['answer'][number]

const AttemptCard = ({ attempt, before }: { attempt: Attempt; before: Attempt | undefined }) => {
  const { at, durationMs, succeeded, status, error, responseBody, address } = attempt
  return (
    <li>
      <p>
        <Badge kind={succeeded ? 'good' : 'bad'}>{status ?? 'no answer'}</Badge> {error}
      </p>
      <p className={style.facts}>
        <FullTime at={at} /> · {durationMs} ms {address && `· ${address}`}
      </p>
      {responseBody && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached
        <section tabIndex={0} aria-label={`What it answered at ${new Date(at).toISOString()}`}>
          <pre>{responseBody}</pre>
        </section>
      )}
      <Headers title="Headers that were sent" now={attempt.requestHeaders} before={before?.requestHeaders} />
      {attempt.responseHeaders && (
        <Headers
          title="Headers of the answer"
          now={attempt.responseHeaders}
          before={before && (before.responseHeaders ?? {})}
        />
      )}
    </li>
  )
}

/** What is not as in the attempt before stands out. */
const Headers = ({ title, now, before }: HeadersProps) => (
  <details className={style.headers}>
    <summary>{title}</summary>
    <dl>
      {Object.entries(now).map(([name, value]) => (
        <div key={name} data-changed={(before && before[name] !== value) || undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  </details>
)

interface HeadersProps {
  title: string
  now: Readonly<Record<string, string>>
  before: Readonly<Record<string, string>> | undefined
}
