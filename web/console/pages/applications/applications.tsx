import { EntityId } from '../../components/copy.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { labelOf, typeLabels } from './application-types.ts'

const Applications = () => (
  <ListPage
    title="Applications"
    lead="What signs people in or calls your APIs: web and native applications, and backends by themselves."
    icon="application"
    create={{
      ...{ operation: 'createApplication', label: 'New application', path: '/applications/new' },
      input: { body: { name: 'My application', type: 'Traditional' } },
    }}
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
    empty="An application gets a client id, and where it can keep one a secret. Its guide has what you paste into your code."
  />
)

export default Applications
