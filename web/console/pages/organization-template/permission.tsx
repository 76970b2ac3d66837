import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page } from '../../components/page.tsx'
import { scopeFields } from './template-fields.ts'

const above = { title: 'Organization template', path: '/organization-template/permissions' }

/** One permission that roles of organizations carry. */
const PermissionPage = ({ params: { id = '' } }: { params: { id?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getOrganizationScope', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: scope, etag } = data
  return (
    <Page
      title={scope.name}
      above={above}
      lead={<EntityId id={id} />}
      actions={
        <ConfirmDeletion
          kind="organization permission"
          name={scope.name}
          operation="deleteOrganizationScope"
          params={{ id }}
          onDone={() => navigate(above.path)}
        />
      }
    >
      <EntityForm
        {...{ name: 'settings', operation: 'updateOrganizationScope', params: { id } }}
        {...{ record: scope, etag, groups: { 'What it is': scopeFields } }}
      />
    </Page>
  )
}

export default PermissionPage
