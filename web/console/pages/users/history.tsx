import { EntityTable } from '../../components/entity-table.tsx'
import { Badge } from '../../components/page.tsx'
import { FullTime } from '../../components/time.tsx'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What was done to, by or for somebody, as the audit trail has it. */
export const History = ({ userId }: { userId: string }) => (
  <EntityTable
    title="History"
    operation="listLogs"
    query={{ userId, enableCap: true }}
    columns={[
      { title: 'What', cell: ({ key }) => <code>{key}</code> },
      {
        title: 'Result',
        cell: ({ payload }) =>
          payload['result'] === 'Error' ? <Badge kind="bad">refused</Badge> : <Badge kind="good">done</Badge>,
      },
      { title: 'From', cell: ({ payload }) => text(payload['ip']), isMinor: true },
      { title: 'When', cell: ({ createdAt }) => <FullTime at={createdAt} /> },
    ]}
    empty={<p>Nothing is known of them: rows of the audit trail are kept for a while only.</p>}
  />
)
