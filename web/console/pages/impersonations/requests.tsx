import { CreateLink } from '../../components/create-link.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { Page, Tabs } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { actForUser, tabs } from './impersonations.tsx'
import { Named } from './named.tsx'
import { requestStates, StateOfRequest } from './state.tsx'

/** What customers were asked, and what they said. */
const Requests = () => (
  <Page
    title="Requests to customers"
    lead="Where a rule wants it, a customer agrees before anybody acts for them. They see who asks, why, and the same number."
    actions={<CreateLink {...actForUser} />}
  >
    <Tabs tabs={tabs} current="/impersonations/requests" />
    <EntityTable
      title="Requests"
      operation="listImpersonationRequests"
      query={{ includeNames: true }}
      link={({ id }) => `/impersonations/requests/${id}`}
      filters={[
        { kind: 'choice', name: 'status', label: 'State', options: requestStates },
        { kind: 'text', name: 'userId', label: 'Who was asked: id of a user' },
        { kind: 'text', name: 'actorId', label: 'Who is to act: id of a user' },
        { kind: 'text', name: 'creatorId', label: 'Who asked: id of a client' },
      ]}
      columns={[
        { title: 'Why', cell: ({ reason, ticket }) => reason ?? ticket ?? 'No reason given' },
        { title: 'State', cell: ({ status }) => <StateOfRequest status={status} /> },
        { title: 'Number', cell: ({ number }) => number, isMinor: true },
        { title: 'Asked', cell: ({ userId, names }) => <Named id={userId} names={names} /> },
        {
          title: 'Who is to act',
          cell: ({ actorId, creatorId, names }) => <Named id={actorId ?? creatorId} names={names} />,
          isMinor: true,
        },
        { title: 'When', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
      ]}
      empty={
        <EmptyPage icon="mask" title="No customer was asked yet">
          Rules that add "approval" to `require` make it so, for some customers or for all.
        </EmptyPage>
      }
    />
  </Page>
)

export default Requests
