import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { Badge } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { stateOf, states } from './delivery-states.ts'

/** What the hook was sent, newest first. */
export const Deliveries = ({ hookId: id }: { hookId: string }) => (
  <EntityTable
    title="Deliveries"
    operation="listHookDeliveries"
    params={{ id }}
    link={(delivery) => `/hooks/${id}/deliveries/${delivery.id}`}
    filters={[
      { kind: 'choice', name: 'state', label: 'State', options: states },
      { kind: 'text', name: 'event', label: 'Event, such as User.Created' },
      { kind: 'text', name: 'entityId', label: 'Id of the entity' },
    ]}
    columns={[
      {
        title: 'Event',
        cell: ({ event, test }) => (
          <>
            {event} {test && <Badge>test</Badge>}
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
)
