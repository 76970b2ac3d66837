import { Allowed } from '../../components/allowed.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Page } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'

const Organizations = () => (
  <Page
    title="Organizations"
    lead="Companies, teams or workspaces whose people use your applications together, with roles of their own in each."
    actions={
      <>
        <LinkButton path="/organization-template">Roles and permissions</LinkButton>
        <Allowed operation="createOrganization">
          <LinkButton kind="main" icon="plus" path="/organizations/new">
            New organization
          </LinkButton>
        </Allowed>
      </>
    }
  >
    <EntityTable
      title="Organizations"
      operation="listOrganizations"
      query={{ showFeatured: true }}
      link={({ id }) => `/organizations/${id}`}
      filters={[searchFilter('Name or id', 'q')]}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        {
          title: 'Members',
          cell: ({ usersCount = 0, isMfaRequired }) => (
            <>
              {usersCount.toLocaleString('en')} {isMfaRequired && <Badge>second factor</Badge>}
            </>
          ),
        },
        { title: 'Description', cell: ({ description }) => description, isMinor: true },
        { title: 'Id', cell: ({ id }) => <EntityId id={id} />, isMinor: true },
        { title: 'Made', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
      ]}
      empty={
        <EmptyPage
          icon="organization"
          title="No organizations yet"
          create={{
            ...{ operation: 'createOrganization', label: 'New organization', path: '/organizations/new' },
            input: { body: { name: 'Example Ltd' } },
          }}
        >
          An organization has members, each with roles in it. Tokens for it carry what those roles allow there, and
          nothing of other organizations.
        </EmptyPage>
      }
    />
  </Page>
)

export default Organizations
