import { useSearchParams } from 'wouter'
import { Allowed } from '../../components/allowed.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, EventName } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { stateOf, states } from './delivery-states.ts'
import { aboutFilters, replayOf, replayPath } from './replay-filter.ts'

/** What the hook was sent, newest first. */
export const Deliveries = ({ hookId: id }: { hookId: string }) => (
  <>
    <EntityTable
      title="Deliveries"
      operation="listHookDeliveries"
      params={{ id }}
      link={(delivery) => `/hooks/${id}/deliveries/${delivery.id}`}
      filters={[{ kind: 'choice', name: 'state', label: 'State', options: states }, ...aboutFilters]}
      columns={[
        {
          title: 'Event',
          cell: ({ event, test }) => (
            <>
              <EventName name={event} /> {test && <Badge>test</Badge>}
            </>
          ),
        },
        { title: 'State', cell: ({ state }) => <Badge kind={stateOf(state)}>{states[state]}</Badge> },
        { title: 'About', cell: ({ entity }) => `${entity.kind} ${entity.id}`, isMinor: true },
        { title: 'Attempts', cell: ({ attempts }) => attempts, isMinor: true },
        { title: 'Answer', cell: ({ lastStatus, lastError }) => lastStatus ?? lastError, isMinor: true },
        { title: 'When', cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
      ]}
      empty={
        <EmptyPage icon="event" title="Nothing was sent yet">
          Change something that the hook listens to, or send a test.
        </EmptyPage>
      }
    />
    <SendAgain hookId={id} />
  </>
)

/** All that the filters match, not only the page that is shown. */
const SendAgain = ({ hookId }: { hookId: string }) => {
  const [search] = useSearchParams()
  const path = replayPath(hookId, search)
  if (!replayOf(new URLSearchParams(path.split('?')[1]))) return null
  return (
    <p>
      <Allowed operation="createHookReplay">
        <LinkButton path={path}>Send what matches again…</LinkButton>
      </Allowed>
    </p>
  )
}
