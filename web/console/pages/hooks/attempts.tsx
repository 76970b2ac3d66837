import { useRead } from '../../api/queries.ts'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'
import style from './attempts.module.css'

/** Every POST of a delivery, side by side, so that what differs is seen. */
export const Attempts = ({ hookId: id, deliveryId }: { hookId: string; deliveryId: string }) => {
  const query = { page: 1, page_size: 20 }
  const { data, error } = useRead('listHookDeliveryAttempts', { params: { id, deliveryId }, query })
  return (
    <Section title="Attempts">
      <ProblemNotice error={error} />
      {!data && !error && <Loading lines={3} />}
      {data?.body.length === 0 && <p>None yet.</p>}
      <ol className={style.attempts}>
        {data?.body.map(
          ({ id: attemptId, at, durationMs, succeeded, status, error: reason, responseBody, address }) => (
            <li key={attemptId}>
              <p>
                <Badge kind={succeeded ? 'good' : 'bad'}>{status ?? 'no answer'}</Badge> {reason}
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
            </li>
          ),
        )}
      </ol>
    </Section>
  )
}
