import { operations } from '../../api/operations.ts'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { Badge, Page } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { entryOf } from './entry.ts'

const keys = [
  ...['ExchangeTokenBy.AuthorizationCode', 'ExchangeTokenBy.RefreshToken', 'ExchangeTokenBy.ClientCredentials'],
  ...['ExchangeTokenBy.TokenExchange', 'RevokeToken', 'Session.End', 'Interaction.Create', 'Interaction.End'],
  'Console.savePolicies',
  ...Object.values(operations)
    .filter(({ method }) => method !== 'GET')
    .map(({ id }) => `Management.${id}`),
]

/** What was done here, by whom: nothing in it can be changed. */
const Audit = () => (
  <Page
    title="Audit trail"
    lead="Who did what, to whom, and what came of it: changes, tokens, sign-ins. It cannot be changed; names of fields are kept, values are not."
  >
    <EntityTable
      title="Audit trail"
      operation="listLogs"
      query={{ enableCap: true }}
      link={({ id }) => `/audit/${id}`}
      filters={[
        { kind: 'text', name: 'logKey', label: 'What: its whole key', suggestions: keys },
        { kind: 'text', name: 'personId', label: 'Who, in the console: id' },
        { kind: 'text', name: 'userId', label: 'About: id of a user' },
        { kind: 'text', name: 'applicationId', label: 'Through: id of a client' },
        { kind: 'text', name: 'sessionId', label: 'In a session: sid' },
        { kind: 'choice', name: 'result', label: 'Result', options: { Success: 'Done', Error: 'Refused' } },
        { kind: 'time', name: 'start_time', label: 'From' },
        { kind: 'time', name: 'end_time', label: 'To' },
      ]}
      columns={[
        { title: 'What', cell: (row) => entryOf(row).what },
        {
          title: 'Result',
          cell: (row) => (entryOf(row).isRefused ? <Badge kind="bad">refused</Badge> : <Badge kind="good">done</Badge>),
        },
        { title: 'Who', cell: (row) => <code>{entryOf(row).by}</code>, isMinor: true },
        { title: 'Where', cell: (row) => <code>{entryOf(row).path}</code>, isMinor: true },
        { title: 'When', cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
      ]}
      empty={
        <EmptyPage icon="audit" title="Nothing has happened yet">
          Each change, each token and each sign-in leaves a row here.
        </EmptyPage>
      }
    />
  </Page>
)

export default Audit
