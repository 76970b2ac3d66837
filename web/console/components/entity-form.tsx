import { type ReactNode, useContext, useEffect, useId, useRef, useState } from 'react'
import type { Input, OperationId } from '../api/operations.ts'
import { isProblem } from '../api/problem.ts'
import { useChange } from '../api/queries.ts'
import type { Calls } from '../generated/api.ts'
import { Allowed } from './allowed.tsx'
import { Button, RefusalContext } from './button.tsx'
import { CopyAsCurl } from './copy.tsx'
import { Dialog, DialogActions } from './dialog.tsx'
import { useDraft } from './draft.ts'
import style from './entity-form.module.css'
import type { Draft, Field } from './field.ts'
import { Fields } from './fields.tsx'
import { useKey } from './keys.ts'
import { useLeaveGuard } from './leave-guard.ts'
import { announce, Notice, ProblemNotice } from './notice.tsx'
import { Section } from './page.tsx'
import { changedFields, changedLines, changeOf, same, shown, valueAt, valuesOf } from './record-values.ts'

interface EntityFormProps<Id extends OperationId> {
  /** Tells the forms of a page apart. */
  name: string
  operation: Id
  params: Calls[Id]['params']
  /** The record as the server has it, and its version. */
  record: object
  etag?: string | undefined
  /** Under their headings. */
  groups: Readonly<Record<string, readonly Field[]>>
  /** From members as the form has them to those of the operation, where they differ. */
  bodyOf?(change: Record<string, unknown>): Record<string, unknown>
  /** Stands beside the fields: what becomes of the record as it is typed. */
  beside?(record: object): ReactNode
  /** Below the fields, with what is typed in them. */
  children?: (values: Draft) => ReactNode
}

/**
 * Changes a record. What differs stands in one bar, as a diff, and is saved from there; leaving without that asks.
 * Whoever saves over somebody else's change sees it first.
 */
export const EntityForm = <Id extends OperationId>(props: EntityFormProps<Id>) => (
  <Allowed operation={props.operation}>
    <AllowedForm {...props} />
  </Allowed>
)

const AllowedForm = <Id extends OperationId>(props: EntityFormProps<Id>) => {
  const { name, operation, params, record, etag, groups, bodyOf = (change) => change, beside, children } = props
  const fields = Object.values(groups).flat()
  const { draft, setDraft, forget, wasKept, isOf } = useDraft(name)
  isOf(fields)
  const change = useChange(operation)
  const form = useRef<HTMLFormElement>(null)
  const refusal = useContext(RefusalContext)
  const changed = changedFields(fields, record, draft)
  const isUnsaved = changed.length > 0
  // What the record was when the person began to type.
  const [begun, setBegun] = useState({ record, etag })
  useEffect(() => {
    if (!isUnsaved) setBegun({ record, etag })
  }, [isUnsaved, record, etag])
  const others = fields.filter(({ path }) => !same(valueAt(begun.record, path), valueAt(record, path)))
  const isConflict = isProblem(change.error) && change.error.status === 412
  const leaving = useLeaveGuard(isUnsaved, forget)
  const changes = changeOf(changed, record, draft)
  const input = { params, body: bodyOf(changes) } as Input<Id>
  const save = () =>
    change.mutate(
      { ...input, ifMatch: isConflict ? etag : begun.etag },
      {
        onSuccess: () => {
          forget()
          announce('Saved.')
        },
      },
    )
  const submit = () => form.current?.requestSubmit()
  useKey({ keys: 'Ctrl S', label: 'Save' }, isUnsaved ? submit : undefined)
  useKey({ keys: 'e', label: 'Edit' }, refusal ? undefined : () => form.current?.querySelector('input')?.focus())
  const content = (
    <form
      ref={form}
      className={style.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (isUnsaved && !refusal) save()
      }}
    >
      {refusal && <Notice>{refusal}</Notice>}
      {Object.entries(groups).map(([title, group]) => (
        <Section key={title} title={title}>
          <Fields
            fields={group}
            values={valuesOf(group, record, draft)}
            issues={isProblem(change.error) ? change.error.issues : []}
            onChange={(path, value) => setDraft({ ...draft, [path]: value })}
          />
        </Section>
      ))}
      {children?.(valuesOf(fields, record, draft))}
      {isUnsaved && (
        <SaveBar>
          {wasKept && <p>You typed this before; it is not saved yet.</p>}
          {isConflict ? (
            <OtherVersion fields={others} record={record} />
          ) : (
            <ProblemNotice error={change.error} fields={fields} />
          )}
          <Diff fields={changed} before={record} after={draft} />
          <div className={style.actions}>
            <CopyAsCurl operation={operation} input={input} />
            <Button onPress={forget}>Discard</Button>
            <Button kind="main" type="submit" isPending={change.isPending}>
              {isConflict ? 'Save over it' : 'Save'}
            </Button>
          </div>
        </SaveBar>
      )}
      <Dialog title="Leave without saving?" isOpen={leaving !== undefined} onClose={() => leaving?.stay()} isStrict>
        <p>What you changed here is not saved: {changed.map(({ label }) => label).join(', ')}.</p>
        <DialogActions>
          <Button kind="danger" onPress={() => leaving?.leave()}>
            Leave and discard
          </Button>
          <Button kind="main" autoFocus onPress={() => leaving?.stay()}>
            Stay
          </Button>
        </DialogActions>
      </Dialog>
    </form>
  )
  if (!beside) return content
  return (
    <div className={style.pair}>
      {content}
      {beside({ ...record, ...changes })}
    </div>
  )
}

const SaveBar = ({ children }: { children: ReactNode }) => (
  <section className={style.bar} aria-label="Changes that are not saved">
    {children}
  </section>
)

interface DiffProps {
  fields: readonly Field[]
  before: unknown
  after: Readonly<Record<string, unknown>>
}

const Diff = ({ fields, before, after }: DiffProps) => (
  <dl className={style.diff}>
    {fields.map((field) => (
      <div key={field.path}>
        <dt>{field.label}</dt>
        {field.kind === 'code' ? (
          <Lines {...changedLines(String(valueAt(before, field.path) ?? ''), String(after[field.path] ?? ''))} />
        ) : (
          <dd>
            <del dir="auto">{shown(valueAt(before, field.path), field)}</del> <span aria-hidden="true">→</span>{' '}
            <ins dir="auto">{shown(after[field.path], field)}</ins>
          </dd>
        )}
      </div>
    ))}
  </dl>
)

const Lines = ({ gone, come }: { gone: string; come: string }) => (
  <dd className={style.lines}>
    {gone && <del>{gone}</del>}
    {come && <ins>{come}</ins>}
  </dd>
)

const OtherVersion = ({ fields, record }: { fields: readonly Field[]; record: unknown }) => {
  const id = useId()
  return (
    <div role="alert" aria-labelledby={id}>
      <Notice kind="warn">
        <p id={id}>
          <strong>Somebody changed this in the meantime.</strong> Nothing was saved. Below, your changes stand against
          what is there now.
        </p>
        {fields.map((field) => (
          <p key={field.path}>
            {field.label} is now: <bdi>{shown(valueAt(record, field.path), field)}</bdi>
          </p>
        ))}
      </Notice>
    </div>
  )
}
