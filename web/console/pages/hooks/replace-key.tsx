import { useState } from 'react'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import type { Draft, Field } from '../../components/field.ts'
import { Fields } from '../../components/fields.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'

const how: Field = {
  ...{ path: 'overlapSeconds', label: 'The old key', kind: 'choice', isRequired: true },
  options: {
    86400: 'Signs along for a day: receivers change over when it suits them',
    604800: 'Signs along for a week',
    0: 'Ends at once: it has leaked',
  },
}

/** A new signing key, with both signing for a while. */
export const ReplaceKey = ({ hookId: id, onDone }: { hookId: string; onDone(): void }) => {
  const dialog = useDialog('replace key')
  const [values, setValues] = useState<Draft>({ overlapSeconds: '86400' })
  const replace = useChange('replaceHookSigningKey')
  const overlapSeconds = Number(values['overlapSeconds'])
  const input = { params: { id }, body: { overlapSeconds } }
  const confirm = () =>
    replace.mutate(input, {
      onSuccess: () => {
        announce('The hook has a new key.')
        dialog.close()
        onDone()
      },
    })
  return (
    <>
      <Allowed operation="replaceHookSigningKey">
        <Button onPress={dialog.open}>Replace…</Button>
      </Allowed>
      <Dialog title="Replace the signing key?" isOpen={dialog.isOpen} onClose={dialog.close} isStrict>
        <ProblemNotice error={replace.error} />
        <Fields fields={[how]} values={values} onChange={(path, value) => setValues({ ...values, [path]: value })} />
        {overlapSeconds === 0 && (
          <Notice kind="warn">Receivers refuse what they get until they have the new key; it is tried again.</Notice>
        )}
        <DialogActions>
          <CopyAsCurl operation="replaceHookSigningKey" input={input} />
          <Button onPress={dialog.close}>Cancel</Button>
          <Button kind={overlapSeconds === 0 ? 'danger' : 'main'} isPending={replace.isPending} onPress={confirm}>
            Replace the key
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
