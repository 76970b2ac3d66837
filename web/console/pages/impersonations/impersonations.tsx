import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { CreateLink, type Creation } from '../../components/create-link.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { Notice } from '../../components/notice.tsx'
import { Page, Tabs } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { Named } from './named.tsx'
import { StateOfSession } from './state.tsx'

export const actForUser: Creation<'createSubjectToken'> = {
  operation: 'createSubjectToken',
  label: 'Act for a user',
  path: '/impersonations/new',
  input: { body: { userId: 'u8j2k4m6n8p0', reason: 'The invoice is wrong', ticket: 'T-1' } },
}

export const tabs = [
  { title: 'Sessions', path: '/impersonations' },
  { title: 'Requests to customers', path: '/impersonations/requests' },
]

/** Who acts as whom, now and before. */
const Impersonations = () => (
  <Page
    title="Impersonation"
    lead="Who acts for whom, why, and what they did. Each session is one time line, from the request to the last delivery."
    actions={<CreateLink {...actForUser} />}
  >
    <Tabs tabs={tabs} current="/impersonations" />
    <Waiting />
    <EntityTable
      title="Sessions"
      operation="listImpersonations"
      query={{ includeNames: true }}
      link={({ id }) => `/impersonations/${id}`}
      filters={[
        { kind: 'choice', name: 'active', label: 'State', options: { true: 'Going on', false: 'Over' } },
        { kind: 'text', name: 'userId', label: 'As whom: id of a user' },
        { kind: 'text', name: 'actorId', label: 'Who: id of a user' },
        { kind: 'text', name: 'ticket', label: 'Ticket' },
        { kind: 'text', name: 'reason', label: 'Part of the reason' },
        { kind: 'text', name: 'clientId', label: 'Through: id of a client' },
        { kind: 'time', name: 'from', label: 'From' },
        { kind: 'time', name: 'to', label: 'To' },
      ]}
      columns={[
        { title: 'Why', cell: ({ reason, ticket }) => reason ?? ticket ?? 'No reason given' },
        { title: 'State', cell: (session) => <StateOfSession session={session} /> },
        { title: 'Ticket', cell: ({ ticket }) => ticket ?? '–', isMinor: true },
        {
          title: 'Who',
          cell: ({ actorId, clientId, names }) => <Named id={actorId ?? clientId} names={names} />,
          isMinor: true,
        },
        { title: 'As whom', cell: ({ subjectId, names }) => <Named id={subjectId} names={names} /> },
        { title: 'Began', cell: ({ startedAt }) => <RelativeTime at={startedAt} />, isMinor: true },
      ]}
      empty={
        <EmptyPage icon="mask" title="Nobody has acted for anybody yet" create={actForUser}>
          A subject token stands for a user until an application exchanges it; from then on everything that is done with
          it stands in a session here.
        </EmptyPage>
      }
    />
  </Page>
)

/** Customers who have not answered yet. */
const Waiting = () => {
  const { data } = useRead('listImpersonationRequests', { query: { status: 'pending', page: 1, page_size: 1 } })
  const count = data?.total ?? 0
  if (count === 0) return null
  return (
    <Notice>
      <Link href="/impersonations/requests?status=pending">
        {count === 1 ? 'One request waits' : `${count.toLocaleString('en')} requests wait`} for the customer's answer.
      </Link>
    </Notice>
  )
}

export default Impersonations
