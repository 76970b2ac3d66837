import { type ReactNode, useRef } from 'react'
import type { Input, OperationId } from '../api/operations.ts'
import { isProblem } from '../api/problem.ts'
import { useChange } from '../api/queries.ts'
import type { Calls } from '../generated/api.ts'
import { Allowed } from './allowed.tsx'
import { Button } from './button.tsx'
import { CopyAsCurl } from './copy.tsx'
import { useDraft } from './draft.ts'
import style from './entity-form.module.css'
import type { Draft, Field } from './field.ts'
import { Fields } from './fields.tsx'
import { useKey } from './keys.ts'
import { ProblemNotice } from './notice.tsx'
import { newOf } from './record-values.ts'

interface CreateFormProps<Id extends OperationId> {
  name: string
  operation: Id
  params?: Calls[Id]['params']
  fields: readonly Field[] | ((draft: Draft) => readonly Field[])
  initial?: Draft
  /** What the button says: `Create application`. */
  label: string
  children?: ReactNode
  onDone(answer: Calls[Id]['answer']): void
}

/** Makes something new; also of the call that does it there is a copy to be had. */
export const CreateForm = <Id extends OperationId>(props: CreateFormProps<Id>) => {
  const { name, operation, params, initial, label, children, onDone } = props
  const { draft, setDraft, forget } = useDraft(name, initial)
  const form = useRef<HTMLFormElement>(null)
  const create = useChange(operation)
  const fields = typeof props.fields === 'function' ? props.fields(draft) : props.fields
  const input = { params, body: newOf(fields, draft) } as Input<Id>
  useKey({ keys: 'Ctrl S', label }, () => form.current?.requestSubmit())
  const submit = () =>
    create.mutate(input, {
      onSuccess: (answer) => {
        forget()
        onDone(answer)
      },
    })
  return (
    <form
      ref={form}
      className={style.form}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <ProblemNotice error={create.error} fields={fields} />
      {children}
      <Fields
        fields={fields}
        values={draft}
        issues={isProblem(create.error) ? create.error.issues : []}
        onChange={(path, value) => setDraft({ ...draft, [path]: value })}
      />
      <div className={style.actions} data-start="">
        <Allowed operation={operation}>
          <Button kind="main" type="submit" isPending={create.isPending}>
            {label}
          </Button>
        </Allowed>
        <CopyAsCurl operation={operation} input={input} />
      </div>
    </form>
  )
}
