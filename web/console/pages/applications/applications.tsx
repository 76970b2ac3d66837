import { Allowed } from '../../components/allowed.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Page } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { labelOf, typeLabels } from './application-types.ts'

const Applications = () => (
  <Page
    title="Applications"
    lead="What signs people in or calls your APIs: web and native applications, and backends by themselves."
    actions={
      <Allowed operation="createApplication">
        <LinkButton kind="main" icon="plus" path="/applications/new">
          New application
        </LinkButton>
      </Allowed>
    }
  >
    <EntityTable
      title="Applications"
      operation="listApplications"
      link={({ id }) => `/applications/${id}`}
      filters={[
        searchFilter('Name, description or id'),
        { kind: 'choice', name: 'types', label: 'Kind', options: typeLabels },
        { kind: 'choice', name: 'isThirdParty', label: 'Whose', options: { false: 'Ours', true: 'Of others' } },
      ]}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        {
          title: 'Kind',
          cell: ({ type, isThirdParty }) => (
            <>
              {labelOf(type)} {isThirdParty && <Badge>third party</Badge>}
            </>
          ),
        },
        { title: 'Id', cell: ({ id }) => <EntityId id={id} />, isMinor: true },
        { title: 'Made', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
      ]}
      empty={
        <EmptyPage
          icon="application"
          title="No applications yet"
          create={{
            ...{ operation: 'createApplication', label: 'New application', path: '/applications/new' },
            input: { body: { name: 'My application', type: 'Traditional' } },
          }}
        >
          An application gets a client id, and where it can keep one a secret. Its guide has what you paste into your
          code.
        </EmptyPage>
      }
    />
  </Page>
)

export default Applications
