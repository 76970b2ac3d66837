import { EntityTable } from '../../components/entity-table.tsx'
import { Badge } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { entryOf } from '../audit/entry.ts'

/** What was done to, by or for somebody, as the audit trail has it. */
export const History = ({ userId }: { userId: string }) => (
  <EntityTable
    title="History"
    operation="listLogs"
    query={{ userId, enableCap: true }}
    link={({ id }) => `/audit/${id}`}
    columns={[
      { title: 'What', cell: (row) => entryOf(row).what },
      {
        title: 'Result',
        cell: (row) => (entryOf(row).isRefused ? <Badge kind="bad">refused</Badge> : <Badge kind="good">done</Badge>),
      },
      { title: 'Who', cell: (row) => <code>{entryOf(row).by}</code>, isMinor: true },
      { title: 'From', cell: (row) => entryOf(row).ip, isMinor: true },
      { title: 'When', cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
    ]}
    empty={<p>Nothing is known of them: rows of the audit trail are kept for a while only.</p>}
  />
)
