import { Link } from 'wouter'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { EventName } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'

type Lane = Calls['listHookLanes']['answer'][number]

interface LanesProps {
  hook: Calls['getHook']['answer']
}

/** What waits, by entity: in words what holds it up, and what happens next. */
export const Lanes = ({ hook: { id, enabled } }: LanesProps) => {
  const send = useChange('replayHookDelivery')
  const sendNow = (deliveryId: string) =>
    send.mutate({ params: { id, deliveryId } }, { onSuccess: () => announce('It is sent now.') })
  return (
    <>
      <ProblemNotice error={send.error} />
      <EntityTable
        title="What waits"
        operation="listHookLanes"
        params={{ id }}
        columns={[
          {
            title: 'About',
            cell: ({ entity }) => (
              <>
                {entity.kind} <code>{entity.id}</code>
              </>
            ),
          },
          { title: 'What holds it up', cell: (lane) => <InWords {...{ hookId: id, enabled, lane }} /> },
          {
            title: 'Action',
            isMinor: true,
            cell: ({ head }) => (
              <Allowed operation="replayHookDelivery">
                <Button isPending={send.isPending} onPress={() => sendNow(head.deliveryId)}>
                  Send now
                </Button>
              </Allowed>
            ),
          },
        ]}
        empty={
          <EmptyPage icon="check" title="Nothing waits">
            Everything that the hook was to get was sent. What a receiver refuses waits here, in order for each entity,
            until it has taken it.
          </EmptyPage>
        }
      />
    </>
  )
}

const InWords = ({ hookId, enabled, lane }: { hookId: string; enabled: boolean; lane: Lane }) => {
  const { deliveryId, event, version, attempts, lastStatus, lastError, isSending, since, nextAttemptAt } = lane.head
  const first = (
    <Link href={`/hooks/${hookId}/deliveries/${deliveryId}`}>
      version {version} (<EventName name={event} />)
    </Link>
  )
  const behind =
    lane.behind > 0 && ` ${lane.behind.toLocaleString('en')}${lane.behind === 1_000 ? ' or more' : ''} behind it.`
  if (!enabled)
    return (
      <>
        Held with {first} since <RelativeTime at={since} />: the hook is switched off.{behind}
      </>
    )
  if (isSending)
    return (
      <>
        Sends {first} now.{behind}
      </>
    )
  if (attempts === 0)
    return (
      <>
        Waits to send {first}, since <RelativeTime at={since} />.{behind}
      </>
    )
  return (
    <>
      Waits for {first} since <RelativeTime at={since} />. {lastError ?? `The receiver answered ${lastStatus}.`}{' '}
      {attempts === 1 ? 'One attempt' : `${attempts} attempts`}, the next <RelativeTime at={nextAttemptAt} />.{behind}
    </>
  )
}
