import { Allowed } from '../../components/allowed.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Page } from '../../components/page.tsx'

const Resources = () => (
  <Page
    title="Resources"
    lead="Your APIs, each with its permissions. A token is for one of them: that is its audience."
    actions={
      <Allowed operation="createResource">
        <LinkButton kind="main" icon="plus" path="/resources/new">
          New resource
        </LinkButton>
      </Allowed>
    }
  >
    <EntityTable
      title="Resources"
      operation="listResources"
      link={({ id }) => `/resources/${id}`}
      columns={[
        {
          title: 'Name',
          cell: ({ name, isDefault }) => (
            <>
              {name} {isDefault && <Badge>default</Badge>}
            </>
          ),
        },
        { title: 'Indicator', cell: ({ indicator }) => <code>{indicator}</code> },
        { title: 'Tokens live', cell: ({ accessTokenTtl }) => `${accessTokenTtl} s`, isMinor: true },
      ]}
      empty={
        <EmptyPage
          icon="resource"
          title="No resources yet"
          create={{
            ...{ operation: 'createResource', label: 'New resource', path: '/resources/new' },
            input: { body: { name: 'Orders', indicator: 'https://api.example.com/orders' } },
          }}
        >
          Register your API, then define what may be done with it. Roles carry those permissions to people and backends.
        </EmptyPage>
      }
    />
  </Page>
)

export default Resources
