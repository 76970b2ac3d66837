import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Dialog, DialogActions, useDialog } from '../../components/dialog.tsx'
import { announce, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'

const lookAgainMs = 1_000

/** What was given up after the last attempt: all of it is sent again, or none of it. */
export const DeadLetters = ({ hookId: id }: { hookId: string }) => {
  const params = { id }
  const redrive = useChange('redriveHookDeadLetters')
  const query = { state: 'dead', page: 1, page_size: 1 } as const
  // They are queued one after another once the answer is there.
  const everyMs = (dead: readonly unknown[] | undefined) => redrive.isSuccess && dead?.length !== 0 && lookAgainMs
  const { data } = useRead('listHookDeliveries', { params, query }, { everyMs })
  const purge = useChange('purgeHookDeadLetters')
  const dialog = useDialog('purge')
  const total = data?.total ?? 0
  if (!data || (total === 0 && !redrive.isSuccess)) return null
  const confirm = () =>
    purge.mutate(
      { params },
      {
        onSuccess: ({ purged }) => {
          announce(`Cancelled: ${purged.toLocaleString('en')}.`)
          dialog.close()
        },
      },
    )
  return (
    <Section
      title="Given up"
      lead={
        total === 0
          ? 'Nothing is given up any more.'
          : `${total.toLocaleString('en')} ${total === 1 ? 'delivery' : 'deliveries'} failed until the last attempt. They are kept for 14 days.`
      }
      actions={
        total > 0 && (
          <>
            <CopyAsCurl operation="redriveHookDeadLetters" input={{ params }} />
            <Allowed operation="purgeHookDeadLetters">
              <Button onPress={dialog.open}>Cancel all…</Button>
            </Allowed>
            <Allowed operation="redriveHookDeadLetters">
              <Button
                isPending={redrive.isPending}
                onPress={() =>
                  redrive.mutate({ params }, { onSuccess: () => announce('What was given up is queued again.') })
                }
              >
                Send all {total.toLocaleString('en')} again
              </Button>
            </Allowed>
          </>
        )
      }
    >
      <ProblemNotice error={redrive.error} />
      <Dialog title="Cancel what was given up?" isOpen={dialog.isOpen} onClose={dialog.close} isStrict>
        <ProblemNotice error={purge.error} />
        <p>
          {total.toLocaleString('en')} are then sent by no redrive any more; a replay of what was cancelled still finds
          them.
        </p>
        <DialogActions>
          <CopyAsCurl operation="purgeHookDeadLetters" input={{ params }} />
          <Button onPress={dialog.close}>Keep them</Button>
          <Button kind="danger" isPending={purge.isPending} onPress={confirm}>
            Cancel all
          </Button>
        </DialogActions>
      </Dialog>
    </Section>
  )
}
