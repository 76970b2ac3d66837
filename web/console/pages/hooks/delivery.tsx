import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl, CopyableText, EntityId } from '../../components/copy.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Badge, Facts, Loading, Page, type PageProps, Section } from '../../components/page.tsx'
import { FullTime, RelativeTime } from '../../components/time.tsx'
import { Attempts } from './attempts.tsx'
import { stateOf, states } from './delivery-states.ts'

/** One event owed to one hook: what was sent, what came back, each time. */
const DeliveryPage = ({ params: { id = '', deliveryId = '' } }: PageProps) => {
  const params = { id, deliveryId }
  const { data, error } = useRead('getHookDelivery', { params })
  const replay = useChange('replayHookDelivery')
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { event, state, entity, version, eventId, createdAt, nextAttemptAt, body } = data.body
  return (
    <Page
      title={event}
      above={{ title: 'Deliveries', path: `/hooks/${id}` }}
      lead={<Badge kind={stateOf(state)}>{states[state]}</Badge>}
      actions={
        <>
          <LinkButton path={`/hooks/${id}/signatures?delivery=${deliveryId}`}>Check a signature</LinkButton>
          <CopyAsCurl operation="replayHookDelivery" input={{ params }} />
          <Allowed operation="replayHookDelivery">
            <Button
              isPending={replay.isPending}
              onPress={() => replay.mutate({ params }, { onSuccess: () => announce('It is sent again.') })}
            >
              Send again
            </Button>
          </Allowed>
        </>
      }
    >
      <ProblemNotice error={replay.error} />
      <Section title="What it is about">
        <Facts
          facts={{
            Entity: `${entity.kind} ${entity.id}, version ${version}`,
            Event: <EntityId id={eventId} />,
            Recorded: <FullTime at={createdAt} />,
            ...(nextAttemptAt !== null && { 'Next attempt': <RelativeTime at={nextAttemptAt} /> }),
          }}
        />
      </Section>
      <Attempts hookId={id} deliveryId={deliveryId} />
      {body && (
        <Section title="Body">
          <CopyableText label="what is sent" text={JSON.stringify(body, null, 2)} />
        </Section>
      )}
    </Page>
  )
}

export default DeliveryPage
