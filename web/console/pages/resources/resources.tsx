import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'

const Resources = () => (
  <ListPage
    title="Resources"
    lead="Your APIs, each with its permissions. A token is for one of them: that is its audience."
    icon="resource"
    create={{
      ...{ operation: 'createResource', label: 'New resource', path: '/resources/new' },
      input: { body: { name: 'Orders', indicator: 'https://api.example.com/orders' } },
    }}
    operation="listResources"
    link={({ id }) => `/resources/${id}`}
    columns={[
      {
        title: 'Name',
        cell: ({ name, isDefault }) => (
          <>
            <bdi>{name}</bdi> {isDefault && <Badge>default</Badge>}
          </>
        ),
      },
      { title: 'Indicator', cell: ({ indicator }) => <code>{indicator}</code> },
      { title: 'Tokens live', cell: ({ accessTokenTtl }) => `${accessTokenTtl} s`, isMinor: true },
    ]}
    empty="Register your API, then define what may be done with it. Roles carry those permissions to people and backends."
  />
)

export default Resources
