import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type GatewayOfSession, gatewaysOfSession } from '../../api/gateways.ts'
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

/** How long each gateway is asked whether it refuses, in ms. */
const patience = 15_000

const Effects = ({ id, pressedAt }: { id: string; pressedAt: number | undefined }) => {
  const [openedAt] = useState(Date.now)
  const [refusedAt, setRefusedAt] = useState<Readonly<Record<string, number>>>({})
  const { data, error } = useQuery({
    queryKey: ['gateways of session', id],
    queryFn: async ({ signal }) => {
      const { gateways } = await gatewaysOfSession(id, signal)
      const now = Date.now()
      const refusing = gateways.filter((one) => 'ended' in one && one.ended)
      setRefusedAt((before) => ({ ...Object.fromEntries(refusing.map(({ gateway }) => [gateway, now])), ...before }))
      return gateways
    },
    staleTime: 0,
    refetchInterval: ({ state: { data: last } }) => {
      const isDone = last?.every((one) => 'ended' in one && one.ended) ?? false
      return isDone || Date.now() - (pressedAt ?? openedAt) > patience ? false : 250
    },
  })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <p role="status">Asking the gateways…</p>
  if (data.length === 0)
    return (
      <Notice>
        The console asks no gateways, so none can say that it refuses already. <code>CONSOLE_GATEWAYS</code> names them.
      </Notice>
    )
  return (
    <ul className={style.effects} aria-label="Gateways" aria-live="polite">
      {data.map((one) => (
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

const stateOf = (one: GatewayOfSession) => ('ended' in one ? (one.ended ? 'refuses' : 'waits') : 'away')

const wordsOf = (one: GatewayOfSession, ms: number | undefined): string => {
  if (!('ended' in one)) return `does not say whether it refuses. ${one.because}`
  if (!one.ended) return 'does not refuse yet.'
  return ms !== undefined && ms > 0
    ? `refuses its tokens, ${(ms / 1_000).toFixed(1)} s after "End now".`
    : 'refuses its tokens.'
}
