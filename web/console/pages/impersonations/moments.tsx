import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Decision } from '../../api/gateways.ts'
import { isolated } from '../../components/isolated.tsx'
import { Badge } from '../../components/page.tsx'
import { exactTime } from '../../components/time.tsx'
import type { IconName } from '../../design/icon.tsx'
import { stateOf, states } from '../hooks/delivery-states.ts'
import style from './time-line.module.css'
import type { TimeLine } from './time-line.tsx'

type Entry = TimeLine['entries'][number]
type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>

/** One thing that happened, in words. */
export interface Moment {
  key: string
  at: number
  about: 'session' | 'requests' | 'changes' | 'webhooks'
  icon: IconName
  tone: 'plain' | 'good' | 'bad'
  title: ReactNode
  more?: ReactNode
}

type NameOf = (id: string) => string
type Words = Omit<Moment, 'key' | 'at'>

/** All of them, oldest first. */
export const momentsOf = (entries: readonly Entry[], decisions: readonly Decision[], nameOf: NameOf): Moment[] =>
  [
    ...entries.map((entry, index) => ({ key: `${entry.kind} ${index}`, at: entry.at, ...wordsOf(entry, nameOf) })),
    ...decisions.map((decision) => ({
      key: `${decision.gateway} ${decision.decision_id}`,
      // When it began: what came of it stands behind it. The record is made when the request ends.
      at: Math.floor(Date.parse(decision.timestamp) - decision.duration),
      ...wordsOfRequest(decision),
    })),
  ].toSorted((one, other) => one.at - other.at)

const wordsOf = (entry: Entry, nameOf: NameOf): Words =>
  (words[entry.kind] as (entry: Entry, nameOf: NameOf) => Words)(entry, nameOf)

const words: { [Kind in Entry['kind']]: (entry: EntryOf<Kind>, nameOf: NameOf) => Words } = {
  requested: ({ requestId }) => ({
    ...ofSession('message'),
    title: (
      <>
        The customer <Link href={`/impersonations/requests/${requestId}`}>was asked</Link>
      </>
    ),
  }),
  approved: ({ readOnly, maxTtl }) => ({
    ...ofSession('check', 'good'),
    title: 'The customer agreed',
    more: (readOnly || maxTtl !== null) && (
      <p>
        {readOnly && 'Only for looking. '}
        {maxTtl !== null && `For no longer than ${Math.round(maxTtl / 60)} minutes.`}
      </p>
    ),
  }),
  minted: ({ personId, clientId, policy }, nameOf) => ({
    ...ofSession('plus'),
    title: (
      <>
        <b>{isolated(nameOf(personId ?? clientId))}</b> asked for a subject token{personId && ' in the console'}
      </>
    ),
    more: <Rule policy={policy} />,
  }),
  exchanged: ({ clientId, policy, token, ip, logId }, nameOf) => ({
    ...ofSession('mask', 'good'),
    title: (
      <>
        <b>{isolated(nameOf(clientId))}</b> exchanged it: the session began
      </>
    ),
    more: (
      <>
        <Rule policy={policy} />
        <p>
          Token <code>{token.id}</code>, until {exactTime(token.expiresAt)}
          {ip && `, from ${ip}`}. {logId && <Link href={`/audit/${logId}`}>Audit row</Link>}
        </p>
      </>
    ),
  }),
  opened: ({ sessionId, subjectId }, nameOf) => ({
    ...ofSession('mask'),
    title: (
      <>
        With its token <Link href={`/impersonations/${sessionId}`}>a session as {isolated(nameOf(subjectId))}</Link> was
        opened
      </>
    ),
  }),
  changed: ({ operation, result, clientId, method, path, fields, logId }, nameOf) => ({
    ...{ about: 'changes', icon: 'application', tone: result === 'Error' ? 'bad' : 'plain' },
    title: (
      <>
        <b>{clientId === null ? 'An API' : isolated(nameOf(clientId))}</b> changed something:{' '}
        <Link href={`/audit/${logId}`}>{operation}</Link>
      </>
    ),
    more: (
      <p>
        <code>
          {method} {path}
        </code>
        {fields.length > 0 && ` · ${fields.join(', ')}`}
      </p>
    ),
  }),
  event: ({ type, entity, deliveries }) => ({
    ...{ about: 'webhooks', icon: 'event', tone: 'plain' },
    title: (
      <>
        Event <Link href={`/events/feed?entity=${entity.kind}:${entity.id}`}>{type}</Link>
      </>
    ),
    more: deliveries.length > 0 && <Deliveries deliveries={deliveries} />,
  }),
  ended: ({ by }, nameOf) => ({
    ...ofSession('cross', 'bad'),
    title: by === null ? 'It was ended' : <>Ended by {isolated(nameOf(by))}</>,
  }),
  expired: () => ({ ...ofSession('cross'), title: 'Its time was over' }),
}

const ofSession = (icon: IconName, tone: Moment['tone'] = 'plain') => ({ about: 'session', icon, tone }) as const

/** What the policy said when it allowed it. */
const Rule = ({ policy }: { policy: EntryOf<'minted'>['policy'] | null }) => {
  if (policy === null) return <p>An older version wrote this: what the policy said was not kept.</p>
  if (!policy.asked) return <p>No policy is configured: whoever mints decides alone.</p>
  const { rule, revision = '', grounds = [], reason, require: required = [], scopes, maxTtl, readOnly } = policy
  const limits = [
    required.includes('approval') && 'the customer had to agree',
    scopes && `permissions: ${scopes.join(' ') || 'none'}`,
    maxTtl !== undefined && `${maxTtl} s at most`,
    readOnly && 'only looking',
  ].filter(Boolean)
  const because = [...grounds, ...(reason === undefined ? [] : [reason])]
  return (
    <p>
      Allowed by <code>{rule}</code>, policies <code title={revision}>{revision.slice(0, 12)}</code>
      {because.length > 0 ? `, because of ${because.join(', ')}` : ': no rule objected'}
      {limits.length > 0 && ` (${limits.join('; ')})`}.
    </p>
  )
}

const Deliveries = ({ deliveries }: Pick<EntryOf<'event'>, 'deliveries'>) => (
  <ul className={style.deliveries} aria-label="Deliveries">
    {deliveries.map(({ id, hookId, hookName, state, attempts, lastStatus, lastError, lastAttempts }) => {
      const last = lastAttempts.at(-1)
      return (
        <li key={id}>
          <Link href={`/hooks/${hookId}/deliveries/${id}`}>{hookName || hookId}</Link>{' '}
          <Badge kind={stateOf(state)}>{states[state]}</Badge>{' '}
          <span>
            {attempts === 1 ? '1 attempt' : `${attempts} attempts`}
            {lastStatus !== null && ` · answered ${lastStatus}`}
            {lastError !== null && ` · ${lastError}`}
            {last && ` · ${last.durationMs} ms`}
          </span>
        </li>
      )
    })}
  </ul>
)

const verdictTones = { allowed: 'good', denied: 'bad', failed: 'bad' } as const

/** A request at a gateway; masks may have taken out anything of it. */
const wordsOfRequest = (decision: Decision): Words => {
  const { gateway, decision_id: id, verdict, status, code, route, duration } = decision
  const { method, path } = Object(Object(decision.input).request) as { method?: unknown; path?: unknown }
  const asked = [method, path].map((one) => (typeof one === 'string' ? one : undefined)).filter(Boolean)
  return {
    ...{ about: 'requests', icon: verdict === 'allowed' ? 'right' : 'cross', tone: verdictTones[verdict] },
    title: (
      <>
        <Link href={`/why/${encodeURIComponent(id)}`}>
          <code>{asked.join(' ') || 'A request'}</code>
        </Link>{' '}
        <Badge kind={verdictTones[verdict]}>{verdict}</Badge>
      </>
    ),
    more: (
      <p>
        {status === 0 ? 'the client left' : status} {code} · {gateway}
        {route && `, route ${route}`} · {duration} ms
      </p>
    ),
  }
}
