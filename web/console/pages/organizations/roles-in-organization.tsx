import { useState } from 'react'
import type { Input, OperationId } from '../../api/operations.ts'
import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { Choices } from '../../components/choices.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Badge } from '../../components/page.tsx'

interface RolesProps<Id extends OperationId> {
  /** Whose they are, in words. */
  of: string
  id: string
  type: 'User' | 'MachineToMachine'
  roles: readonly { id: string; name: string }[]
  replace: { operation: Id; input(organizationRoleIds: string[]): Input<Id> }
}

/** The roles that a member has in an organization, and a dialog that changes them. */
export const RolesInOrganization = <Id extends OperationId>(props: RolesProps<Id>) => {
  const { id, of, type, roles, replace } = props
  const dialog = useDialog(`roles ${id}`)
  const before = roles.map((role) => role.id)
  const [chosen, setChosen] = useState<readonly string[]>(before)
  const { data, error } = useRead(
    'listOrganizationRoles',
    { query: { page: 1, page_size: 100 } },
    { when: dialog.isOpen },
  )
  const change = useChange(replace.operation)
  const possible = data?.body.filter((role) => role.type === type)
  const confirm = () =>
    change.mutate(replace.input([...chosen]), {
      onSuccess: () => {
        announce(`The roles of ${of} are changed.`)
        dialog.close()
      },
    })
  return (
    <>
      {roles.map(({ id: roleId, name }) => (
        <Badge key={roleId}>{name}</Badge>
      ))}{' '}
      <Allowed operation={replace.operation}>
        <Button
          kind="plain"
          icon="settings"
          label={`Roles of ${of}`}
          onPress={() => {
            setChosen(before)
            dialog.open()
          }}
        />
      </Allowed>
      <Dialog title={`Roles of ${of}`} isOpen={dialog.isOpen} onClose={dialog.close}>
        <ProblemNotice error={error ?? change.error} />
        {possible && (
          <Choices
            rows={possible.map(({ id: key, name, description, scopes }) => ({
              key,
              name,
              detail: description || scopes.map((scope) => scope.name).join(', '),
            }))}
            chosen={chosen}
            onChange={setChosen}
          />
        )}
        {possible?.length === 0 && (
          <>
            <p>There are no roles for them yet; all organizations share them.</p>
            <LinkButton path="/organization-template">Roles and permissions</LinkButton>
          </>
        )}
        <DialogActions>
          <CopyAsCurl operation={replace.operation} input={replace.input([...chosen])} />
          <Button onPress={dialog.close}>Cancel</Button>
          <Button kind="main" isPending={change.isPending} onPress={confirm}>
            Save
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
