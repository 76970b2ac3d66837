import { EntityId } from '../../components/copy.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'

const Organizations = () => (
  <ListPage
    title="Organizations"
    lead="Companies, teams or workspaces whose people use your applications together, with roles of their own in each."
    icon="organization"
    create={{
      ...{ operation: 'createOrganization', label: 'New organization', path: '/organizations/new' },
      input: { body: { name: 'Example Ltd' } },
    }}
    actions={<LinkButton path="/organization-template">Roles and permissions</LinkButton>}
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
    empty="An organization has members, each with roles in it. Tokens for it carry what those roles allow there, and nothing of other organizations."
  />
)

export default Organizations
