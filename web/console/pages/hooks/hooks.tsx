import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'

const Hooks = () => (
  <ListPage
    title="Hooks"
    lead="Where your systems hear of changes: each gets the events that it wants, signed, in order, until it has answered."
    icon="hook"
    create={{
      ...{ operation: 'createHook', label: 'New hook', path: '/hooks/new' },
      input: {
        body: { name: 'CRM', events: ['User.Created'], config: { url: 'https://crm.example.com/webhooks' } },
      },
    }}
    operation="listHooks"
    query={{ includeExecutionStats: true }}
    link={({ id }) => `/hooks/${id}`}
    columns={[
      { title: 'Name', cell: ({ name, id }) => name || id },
      { title: 'URL', cell: ({ config }) => <code>{config.url}</code> },
      { title: 'Hears', cell: ({ events }) => events.join(', '), isMinor: true },
      {
        title: 'State',
        cell: ({ enabled, disabledReason }) =>
          enabled ? (
            <Badge kind="good">on</Badge>
          ) : (
            <Badge kind="warn">{disabledReason ? 'switched off' : 'off'}</Badge>
          ),
      },
      {
        title: 'Last day',
        cell: ({ executionStats }) =>
          executionStats && `${executionStats.successCount} of ${executionStats.requestCount}`,
        isMinor: true,
      },
    ]}
    empty="Name a URL of yours and the events that it wants. Every delivery is signed with a key that only you two have."
  />
)

export default Hooks
