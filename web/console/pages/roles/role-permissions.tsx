import { useState } from 'react'
import { useRead } from '../../api/queries.ts'
import { Assignments } from '../../components/assignments.tsx'
import { Select } from '../../components/select.tsx'

/** What whoever has the role may do; permissions are added API by API. */
export const RolePermissions = ({ roleId: id }: { roleId: string }) => {
  const { data } = useRead('listResources')
  const [chosen, setChosen] = useState<string>()
  const resources = data?.body ?? []
  const resource = resources.find((one) => one.id === chosen) ?? resources[0]
  return (
    <Assignments
      title="Permissions"
      kind="permission"
      lead={
        resource && (
          <Select
            label="To add from"
            value={resource.id}
            options={Object.fromEntries(resources.map((one) => [one.id, one.name]))}
            onChange={setChosen}
          />
        )
      }
      list={{ operation: 'listRoleScopes', input: { params: { id } } }}
      candidates={{ operation: 'listScopes', params: { resourceId: resource?.id ?? '' } }}
      nameOf={({ name }) => name}
      detailOf={(scope) =>
        'resource' in scope
          ? `${scope.resource.name}${scope.description ? ` · ${scope.description}` : ''}`
          : scope.description
      }
      add={{ operation: 'addRoleScopes', input: (scopeIds) => ({ params: { id }, body: { scopeIds } }) }}
      remove={{ operation: 'deleteRoleScope', input: (scopeId) => ({ params: { id, scopeId } }) }}
      empty="It carries no permission yet."
    />
  )
}
