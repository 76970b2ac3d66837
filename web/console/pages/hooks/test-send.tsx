import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import type { Calls } from '../../generated/api.ts'

/** Sends made-up events and waits for what the receiver says. */
export const TestSend = ({ hook: { id, events } }: { hook: Calls['getHook']['answer'] }) => {
  const dialog = useDialog('test')
  const test = useChange('testHook')
  const input = { params: { id }, body: {} }
  const send = () =>
    test.mutate(input, {
      onSuccess: () => {
        announce('The receiver has taken it.')
        dialog.close()
      },
    })
  return (
    <>
      <Allowed operation="testHook">
        <Button onPress={dialog.open}>Send a test…</Button>
      </Allowed>
      <Dialog title="Send a test" isOpen={dialog.isOpen} onClose={dialog.close}>
        <ProblemNotice error={test.error} />
        <p>A made-up event of each kind goes to the receiver, signed as all are: {events.join(', ')}.</p>
        <DialogActions>
          <CopyAsCurl operation="testHook" input={input} />
          <Button onPress={dialog.close}>Cancel</Button>
          <Button kind="main" isPending={test.isPending} onPress={send}>
            Send
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
