import { useRead } from '../../api/queries.ts'
import { Notice } from '../../components/notice.tsx'
import { RelativeTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'

type State = Calls['getHookHealth']['answer']['state']

const sentences: Readonly<Record<State, { kind: 'info' | 'good' | 'warn' | 'bad'; text: string }>> = {
  idle: { kind: 'info', text: 'Nothing was sent to it yet.' },
  succeeding: { kind: 'good', text: 'It answers.' },
  failing: { kind: 'warn', text: 'Its last answers were failures; they are tried again.' },
  open: { kind: 'bad', text: 'It fails, so only a probe is sent now and then until one succeeds.' },
  paused: { kind: 'warn', text: 'It asked for a pause.' },
  disabled: { kind: 'warn', text: 'It is switched off; its events wait.' },
}

/** In one sentence: whether the receiver needs somebody. */
export const Health = ({ hookId: id }: { hookId: string }) => {
  const { data } = useRead('getHookHealth', { params: { id } })
  if (!data) return null
  const { state, failingSince, failures, circuit, pausedUntil, lastSuccessAt, disabledReason } = data.body
  const { kind, text } = sentences[state]
  return (
    <Notice kind={kind}>
      <p>
        <strong>{text}</strong> {disabledReason}
        {failingSince !== null && (
          <>
            {' '}
            {failures} failures since <RelativeTime at={failingSince} />.
          </>
        )}
        {circuit.nextProbeAt !== null && (
          <>
            {' '}
            Next probe <RelativeTime at={circuit.nextProbeAt} />.
          </>
        )}
        {pausedUntil !== null && (
          <>
            {' '}
            It goes on <RelativeTime at={pausedUntil} />.
          </>
        )}
        {lastSuccessAt !== null && (
          <>
            {' '}
            Last success <RelativeTime at={lastSuccessAt} />.
          </>
        )}
      </p>
    </Notice>
  )
}
