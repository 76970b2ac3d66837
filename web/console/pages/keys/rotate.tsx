import { useState } from 'react'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import type { Draft, Field } from '../../components/field.ts'
import { Fields } from '../../components/fields.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'
import type { ChainProps } from './chain.tsx'

const how: Field = {
  ...{ path: 'how', label: 'How', kind: 'choice', isRequired: true },
  options: { gently: 'One after the other: nobody notices', now: 'At once: a key has leaked' },
}
const algorithm: Field = {
  ...{ path: 'algorithm', label: 'Algorithm', kind: 'choice' },
  options: { '': 'As the issuer is set up', ES256: 'ES256', EdDSA: 'EdDSA', RS256: 'RS256' },
}
const days: Field = {
  ...{ path: 'days', label: 'Days until it signs', kind: 'number' },
  hint: 'For verifiers that keep keys for long. Empty: 330 seconds, in which every copy is renewed that keeps to its age.',
}

/** Makes the next key, or replaces all of them. */
export const Rotate = ({ title, rotate, hasAlgorithm = false, ends }: ChainProps) => {
  const dialog = useDialog(rotate)
  const [values, setValues] = useState<Draft>({ how: 'gently' })
  const change = useChange(rotate)
  const isNow = values['how'] === 'now'
  const grace = Number(values['days']) * 86_400
  const body = {
    ...(hasAlgorithm && values['algorithm'] ? { signingKeyAlgorithm: values['algorithm'] as 'ES256' } : {}),
    ...(isNow ? { now: true } : grace > 0 && { rotationGracePeriod: grace }),
  }
  const confirm = () =>
    change.mutate(
      { body },
      {
        onSuccess: () => {
          announce(isNow ? 'All keys are replaced.' : 'The next key is published.')
          dialog.close()
        },
      },
    )
  return (
    <>
      <Allowed operation={rotate}>
        <Button onPress={dialog.open}>Rotate…</Button>
      </Allowed>
      <Dialog title={`Rotate: ${title}`} isOpen={dialog.isOpen} onClose={dialog.close} isStrict>
        <ProblemNotice error={change.error} />
        <Fields
          fields={[how, ...(hasAlgorithm ? [algorithm] : []), ...(isNow ? [] : [days])]}
          values={values}
          onChange={(path, value) => setValues({ ...values, [path]: value })}
        />
        {isNow ? (
          <Notice kind="warn">
            This ends {ends}. Clients need new ones; gateways and APIs follow within 5 minutes, when their copy of the
            keys ends.
          </Notice>
        ) : (
          <Notice>
            The new key is published now and signs later; the present one stays until its last token has ended.
          </Notice>
        )}
        <DialogActions>
          <CopyAsCurl operation={rotate} input={{ body }} />
          <Button onPress={dialog.close}>Cancel</Button>
          <Button kind={isNow ? 'danger' : 'main'} isPending={change.isPending} onPress={confirm}>
            {isNow ? 'Replace all keys now' : 'Publish the next key'}
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
