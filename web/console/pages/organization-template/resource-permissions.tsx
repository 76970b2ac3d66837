import { useRead } from '../../api/queries.ts'
import { Assignments } from '../../components/assignments.tsx'
import type { Calls } from '../../generated/api.ts'

type Resource = Calls['createResource']['answer']

/** Permissions of APIs that a role has in an organization. */
export const ResourcePermissions = ({ roleId: id }: { roleId: string }) => {
  const { data } = useRead('listResources', { query: { includeScopes: true } })
  const resources = new Map(((data?.body ?? []) as Resource[]).map(({ id: resourceId, name }) => [resourceId, name]))
  return (
    <Assignments
      title="Permissions of APIs"
      lead="In tokens for an API and an organization together."
      kind="permission of an API"
      list={{ operation: 'listOrganizationRoleResourceScopes', input: { params: { id } } }}
      candidates={{
        operation: 'listResources',
        query: { includeScopes: true },
        rowsOf: (body) => (body as Resource[]).flatMap(({ scopes }) => scopes),
      }}
      nameOf={({ name }) => name}
      detailOf={(row) => ('resourceId' in row ? resources.get(row.resourceId) : undefined)}
      link={({ resourceId }) => `/resources/${resourceId}`}
      add={{
        operation: 'addOrganizationRoleResourceScopes',
        input: (scopeIds) => ({ params: { id }, body: { scopeIds } }),
      }}
      remove={{
        operation: 'deleteOrganizationRoleResourceScope',
        input: (scopeId) => ({ params: { id, scopeId } }),
      }}
      empty="It carries none."
    />
  )
}
