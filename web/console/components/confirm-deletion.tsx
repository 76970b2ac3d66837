import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useId, useState } from 'react'
import { call } from '../api/call.ts'
import { type Input, type OperationId, operations } from '../api/operations.ts'
import { useChange } from '../api/queries.ts'
import type { Calls } from '../generated/api.ts'
import { Allowed } from './allowed.tsx'
import { Button } from './button.tsx'
import style from './confirm-deletion.module.css'
import { CopyAsCurl } from './copy.tsx'
import { Dialog, DialogActions, useDialog } from './dialog.tsx'
import { announce, Notice, ProblemNotice } from './notice.tsx'

interface ConfirmDeletionProps<Id extends OperationId> {
  /** What it is: `application`. */
  kind: string
  /** What has to be typed. */
  name: string
  operation: Id
  params: Calls[Id]['params']
  onDone(): void
  /** What comes of it, where the server does not count it. */
  children?: ReactNode
}

/** Deletes something: says first what ends with it, and wants its name typed. */
export const ConfirmDeletion = <Id extends OperationId>(props: ConfirmDeletionProps<Id>) => {
  const { kind, name, operation, params, onDone, children } = props
  const id = useId()
  const dialog = useDialog(`delete ${kind} ${name}`)
  const [typed, setTyped] = useState('')
  const remove = useChange(operation)
  const input = { params } as Input<Id>
  const consequences = useConsequences(operation, input, dialog.isOpen)
  const confirm = () =>
    remove.mutate(input, {
      onSuccess: () => {
        announce(`The ${kind} is deleted.`)
        onDone()
      },
    })
  return (
    <>
      <Allowed operation={operation}>
        <Button kind="danger" onPress={dialog.open}>
          Delete…
        </Button>
      </Allowed>
      <Dialog title={`Delete this ${kind}?`} isOpen={dialog.isOpen} onClose={dialog.close} isStrict>
        <form
          className={style.form}
          onSubmit={(event) => {
            event.preventDefault()
            if (typed === name) confirm()
          }}
        >
          <ProblemNotice error={remove.error} />
          {consequences.length > 0 ? (
            <Notice kind="warn">
              <p>With it end or go:</p>
              <ul className={style.consequences}>
                {consequences.map((line) => (
                  <li key={line}>{line}</li>
                ))}
              </ul>
            </Notice>
          ) : (
            <p>{children} This cannot be undone.</p>
          )}
          <div className={style.field}>
            <label htmlFor={id}>
              Type <code dir="auto">{name}</code> to confirm
            </label>
            <input
              id={id}
              autoFocus
              autoComplete="off"
              dir="auto"
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </div>
          <DialogActions>
            <CopyAsCurl operation={operation} input={input} />
            <Button onPress={dialog.close}>Keep it</Button>
            <Button kind="danger" type="submit" isDisabled={typed !== name} isPending={remove.isPending}>
              Delete the {kind}
            </Button>
          </DialogActions>
        </form>
      </Dialog>
    </>
  )
}

/** In words and numbers, by the deletion itself as a dry run. */
const useConsequences = <Id extends OperationId>(operation: Id, { params }: Input<Id>, when: boolean): string[] => {
  const { data } = useQuery({
    queryKey: [operation, params, 'consequences'],
    queryFn: async ({ signal }) => (await call(operation, { params, query: { dryRun: true } }, { signal })).body,
    // Another deletion would be carried out.
    enabled: when && operations[operation].canDryRun,
  })
  const { consequences = {}, hooks = 0 } = (data as Calls['deleteResource']['answer']) ?? {}
  return [
    ...Object.entries(consequences).map(([what, count]) => ({ what: words(what), count })),
    { what: 'hooks that hear of it', count: hooks },
  ]
    .filter(({ count }) => count > 0)
    .map(({ what, count }) => `${what}: ${count.toLocaleString('en')}`)
}

/** `openDeliveries` → `open deliveries`. */
const words = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
