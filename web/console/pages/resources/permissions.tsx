import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { CreateForm } from '../../components/create-form.tsx'
import { Dialog, useDialog } from '../../components/dialog.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import type { Field } from '../../components/field.ts'
import { searchFilter } from '../../components/filters.tsx'
import { announce } from '../../components/notice.tsx'
import { RelativeTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'
import style from './permissions.module.css'

type Scope = Calls['createScope']['answer']

const fields: readonly Field[] = [
  {
    ...{ path: 'name', label: 'Name', isRequired: true, isCode: true, placeholder: 'read:orders' },
    hint: 'Applications ask for it letter by letter; no spaces.',
  },
  { path: 'description', label: 'Description', hint: 'People see it when they are asked to allow it.' },
]

/** What may be done with an API. */
export const Permissions = ({ resourceId, isFixed }: { resourceId: string; isFixed: boolean }) => (
  <>
    {!isFixed && (
      <div className={style.actions}>
        <NewPermission resourceId={resourceId} />
      </div>
    )}
    <EntityTable
      title="Permissions"
      operation="listScopes"
      params={{ resourceId }}
      filters={[searchFilter('Name or description')]}
      columns={[
        { title: 'Name', cell: ({ name }) => <code>{name}</code> },
        { title: 'Description', cell: ({ description }) => description },
        { title: 'Made', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
        ...(isFixed ? [] : [{ title: 'Actions', cell: (scope: Scope) => <Change scope={scope} /> }]),
      ]}
      empty={
        <EmptyPage icon="key" title="No permissions yet">
          Define what may be done with this API, such as <code>read:orders</code>. Roles carry permissions to people.
        </EmptyPage>
      }
    />
  </>
)

const NewPermission = ({ resourceId }: { resourceId: string }) => {
  const dialog = useDialog('new permission')
  return (
    <>
      <Allowed operation="createScope">
        <Button icon="plus" onPress={dialog.open}>
          New permission
        </Button>
      </Allowed>
      <Dialog title="New permission" isOpen={dialog.isOpen} onClose={dialog.close}>
        <CreateForm
          {...{ name: 'new permission', operation: 'createScope', params: { resourceId }, fields }}
          label="Define it"
          onDone={({ name }) => {
            announce(`${name} is defined.`)
            dialog.close()
          }}
        />
      </Dialog>
    </>
  )
}

const Change = ({ scope }: { scope: Scope }) => {
  const { id, resourceId, name, description } = scope
  const dialog = useDialog(`change ${id}`)
  const params = { resourceId, scopeId: id }
  return (
    <span className={style.row}>
      <Allowed operation="updateScope">
        <Button kind="plain" icon="settings" label={`Change ${name}`} onPress={dialog.open} />
      </Allowed>
      <ConfirmDeletion
        {...{ kind: 'permission', name, operation: 'deleteScope', params }}
        onDone={() => announce(`${name} is gone.`)}
      />
      <Dialog title={`Change ${name}`} isOpen={dialog.isOpen} onClose={dialog.close}>
        <CreateForm
          {...{ name: `change ${id}`, operation: 'updateScope', params, fields, label: 'Save' }}
          initial={{ name, description }}
          onDone={() => {
            announce('Saved.')
            dialog.close()
          }}
        />
      </Dialog>
    </span>
  )
}
