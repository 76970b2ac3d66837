import { useState } from 'react'
import { type SessionEnd, useSessionEnd } from '../../api/gateways.ts'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { Icon } from '../../design/icon.tsx'
import style from './end-session.module.css'
import { isGoingOn, type Session } from './state.tsx'

/** Ends it, and shows each gateway as it begins to refuse. */
export const EndSession = ({ session }: { session: Session }) => {
  const { id, endedAt, endedBy } = session
  const end = useChange('endImpersonation')
  const input = { params: { id } }
  const [pressedAt, setPressedAt] = useState<number>()
  const press = () => {
    const at = Date.now()
    end.mutate(input, {
      onSuccess: () => {
        setPressedAt(at)
        announce('The session is ended.')
      },
    })
  }
  if (isGoingOn(session) && !end.isSuccess)
    return (
      <Section
        title="End it"
        lead="Its token, and all that was opened through it, is refused by every gateway within a second."
        actions={
          <>
            <CopyAsCurl operation="endImpersonation" input={input} />
            <Allowed operation="endImpersonation">
              <Button kind="danger" isPending={end.isPending} onPress={press}>
                End now
              </Button>
            </Allowed>
          </>
        }
      >
        <ProblemNotice error={end.error} />
      </Section>
    )
  if (endedAt === null && !end.isSuccess) return null
  return (
    <Section title="Ended" lead={endedBy === null ? undefined : 'Each gateway says by itself whether it refuses.'}>
      <Effects id={id} pressedAt={pressedAt} />
    </Section>
  )
}

const Effects = ({ id, pressedAt }: { id: string; pressedAt: number | undefined }) => {
  const { data, error, dataUpdatedAt } = useSessionEnd(id)
  const gateways = data?.gateways
  const refusedAt = useFirstTimes(
    gateways?.filter((one) => 'ended' in one && one.ended).map(({ gateway }) => gateway) ?? [],
    dataUpdatedAt,
  )
  if (error) return <ProblemNotice error={error} />
  if (!gateways) return <p role="status">Asking the gateways…</p>
  if (gateways.length === 0)
    return (
      <Notice>
        The console asks no gateways, so none can say that it refuses already. <code>CONSOLE_GATEWAYS</code> names them.
      </Notice>
    )
  return (
    <ul className={style.effects} aria-label="Gateways" aria-live="polite">
      {gateways.map((one) => (
        <li key={one.gateway} data-state={stateOf(one)}>
          <span className={style.sign}>
            <Icon name={{ refuses: 'check', waits: 'more', away: 'warning' }[stateOf(one)] as 'check'} size={16} />
          </span>
          <b>{one.gateway}</b>
          <span>{wordsOf(one, pressedAt === undefined ? undefined : (refusedAt[one.gateway] ?? 0) - pressedAt)}</span>
        </li>
      ))}
    </ul>
  )
}

/** When each name was first among them. */
const useFirstTimes = (names: readonly string[], at: number): Readonly<Record<string, number>> => {
  const [times, setTimes] = useState<Readonly<Record<string, number>>>({})
  const fresh = names.filter((name) => !(name in times))
  if (fresh.length > 0) setTimes({ ...times, ...Object.fromEntries(fresh.map((name) => [name, at])) })
  return times
}

const stateOf = (one: SessionEnd) => ('ended' in one ? (one.ended ? 'refuses' : 'waits') : 'away')

const wordsOf = (one: SessionEnd, ms: number | undefined): string => {
  if (!('ended' in one)) return `does not say whether it refuses. ${one.because}`
  if (!one.ended) return 'does not refuse yet.'
  return ms !== undefined && ms > 0
    ? `refuses its tokens, ${(ms / 1_000).toFixed(1)} s after "End now".`
    : 'refuses its tokens.'
}
