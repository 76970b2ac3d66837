import { useState } from 'react'
import type { OperationId } from '../api/operations.ts'
import type { Calls } from '../generated/api.ts'
import { Allowed } from './allowed.tsx'
import { Button } from './button.tsx'
import { CopyableText } from './copy.tsx'
import { CreateForm } from './create-form.tsx'
import { Dialog, DialogActions, useDialog } from './dialog.tsx'
import type { Draft, Field } from './field.ts'
import { Notice } from './notice.tsx'

/** What makes something and answers its value. */
type Maker = { [Id in OperationId]: Calls[Id]['answer'] extends { value: string } ? Id : never }[OperationId]

interface NewSecretProps<Id extends Maker> {
  /** What it is: `token`. */
  kind: string
  /** What the value is called, for whoever hears it: `client secret`. */
  label: string
  operation: Id
  params: Calls[Id]['params']
  fields: readonly Field[]
  initial?: Draft
  bodyOf?(body: Record<string, unknown>): Record<string, unknown>
}

/** A button, and the dialog behind it that makes a secret and shows its value once. */
export const NewSecret = <Id extends Maker>({ kind, label, ...form }: NewSecretProps<Id>) => {
  const dialog = useDialog(`new-${kind}`)
  const [value, setValue] = useState<string>()
  const close = () => {
    setValue(undefined)
    dialog.close()
  }
  return (
    <>
      <Allowed operation={form.operation}>
        <Button icon="plus" onPress={dialog.open}>
          New {kind}
        </Button>
      </Allowed>
      <Dialog title={value ? `The new ${kind}` : `New ${kind}`} isOpen={dialog.isOpen} onClose={close} isStrict>
        {value === undefined ? (
          <CreateForm<Id>
            {...form}
            name={`new ${kind}`}
            label="Make it"
            onDone={(answer) => setValue((answer as { value: string }).value)}
          />
        ) : (
          <>
            <CopyableText label={label} text={value} />
            <Notice kind="warn">This is the only time that it is shown.</Notice>
            <DialogActions>
              <Button kind="main" onPress={close}>
                I have it
              </Button>
            </DialogActions>
          </>
        )}
      </Dialog>
    </>
  )
}
