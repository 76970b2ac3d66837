import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import type { Calls } from '../../generated/api.ts'

/** Keeps a person out, at once and until somebody lets them in again. */
export const Suspension = ({ user: { id, isSuspended } }: { user: Calls['getUser']['answer'] }) => {
  const dialog = useDialog('suspend')
  const change = useChange('updateUserSuspension')
  const input = { params: { userId: id }, body: { isSuspended: !isSuspended } }
  const confirm = () =>
    change.mutate(input, {
      onSuccess: () => {
        announce(isSuspended ? 'They can sign in again.' : 'They are suspended.')
        dialog.close()
      },
    })
  const verb = isSuspended ? 'Let in again' : 'Suspend'
  return (
    <>
      <Allowed operation="updateUserSuspension">
        <Button onPress={dialog.open}>{verb}…</Button>
      </Allowed>
      <Dialog title={`${verb}?`} isOpen={dialog.isOpen} onClose={dialog.close} isStrict>
        <ProblemNotice error={change.error} />
        <p>
          {isSuspended
            ? 'They can sign in again, with what they signed in with before.'
            : 'They are signed out everywhere within seconds, and cannot sign in until you let them.'}
        </p>
        <DialogActions>
          <CopyAsCurl operation="updateUserSuspension" input={input} />
          <Button onPress={dialog.close}>Cancel</Button>
          <Button kind={isSuspended ? 'main' : 'danger'} isPending={change.isPending} onPress={confirm}>
            {verb}
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
