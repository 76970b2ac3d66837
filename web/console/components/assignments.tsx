import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { Input, OperationId } from '../api/operations.ts'
import { useChange, useRead } from '../api/queries.ts'
import { containing } from '../api/search-pattern.ts'
import type { Calls } from '../generated/api.ts'
import { Allowed } from './allowed.tsx'
import style from './assignments.module.css'
import { Button } from './button.tsx'
import { Choices } from './choices.tsx'
import { CopyAsCurl } from './copy.tsx'
import { Dialog, DialogActions, useDialog } from './dialog.tsx'
import { isolated } from './isolated.tsx'
import { announce, Notice, ProblemNotice } from './notice.tsx'
import { Loading, Section } from './page.tsx'
import { Rows } from './rows.tsx'

type RowOf<Id extends OperationId> = Calls[Id]['answer'] extends readonly (infer Row extends { id: string })[]
  ? Row
  : never

/** What may be added. */
interface Candidates<From extends OperationId, Row> {
  operation: From
  query?: Input<From>['query']
  params?: Calls[From]['params']
  /** By which parameter the list is searched. Default `search`. */
  searchedBy?: 'search' | 'q'
  /** Where they are not the rows of the list themselves: then they are searched here. */
  rowsOf?(body: Calls[From]['answer']): readonly Row[]
}

interface AssignmentsProps<
  List extends OperationId,
  From extends OperationId,
  Add extends OperationId,
  Remove extends OperationId,
> {
  title: string
  lead?: ReactNode
  /** One of them: `role`. */
  kind: string
  list: { operation: List; input: Input<List> }
  candidates: Candidates<From, RowOf<List>>
  nameOf(row: RowOf<List> | RowOf<From>): string
  detailOf?(row: RowOf<List> | RowOf<From>): ReactNode
  link?(row: RowOf<List>): string
  add: { operation: Add; input(ids: string[]): Input<Add> }
  remove: { operation: Remove; input(id: string): Input<Remove> }
  empty: string
}

/** Things that something has, of which some can be added and taken away: roles of a user, permissions of a role. */
export const Assignments = <
  List extends OperationId,
  From extends OperationId,
  Add extends OperationId,
  Remove extends OperationId,
>(
  props: AssignmentsProps<List, From, Add, Remove>,
) => {
  const { title, lead, kind, list, nameOf, detailOf, link, remove, empty } = props
  const { data, error } = useRead(list.operation, list.input)
  const taking = useChange(remove.operation)
  const giving = useChange(props.add.operation)
  const [taken, setTaken] = useState<RowOf<List>>()
  const rows = (data?.body ?? []) as unknown as readonly RowOf<List>[]
  return (
    <Section title={title} lead={lead} actions={<AddSome {...props} has={rows.map(({ id }) => id)} />}>
      <ProblemNotice error={error ?? taking.error ?? giving.error} />
      {taken && (
        <Notice>
          <p>
            The {kind} <b>{isolated(nameOf(taken))}</b> is taken away.
          </p>
          <Button
            isPending={giving.isPending}
            onPress={() => giving.mutate(props.add.input([taken.id]), { onSuccess: () => setTaken(undefined) })}
          >
            Undo
          </Button>
        </Notice>
      )}
      {!data && !error && <Loading lines={2} />}
      {data && (
        <Rows
          title={title}
          empty={empty}
          rows={rows.map((row) => ({
            key: row.id,
            title: link ? <Link href={link(row)}>{isolated(nameOf(row))}</Link> : nameOf(row),
            facts: detailOf?.(row),
            actions: (
              <Allowed operation={remove.operation}>
                <Button
                  kind="plain"
                  icon="cross"
                  label={`Take away the ${kind} ${nameOf(row)}`}
                  onPress={() =>
                    taking.mutate(remove.input(row.id), {
                      onSuccess: () => {
                        setTaken(row)
                        announce(`The ${kind} ${nameOf(row)} is taken away.`)
                      },
                    })
                  }
                />
              </Allowed>
            ),
          }))}
        />
      )}
    </Section>
  )
}

interface AddSomeProps<From extends OperationId, Add extends OperationId, Row extends { id: string }> {
  kind: string
  candidates: Candidates<From, Row>
  /** Ids of what is there already. */
  has?: readonly string[]
  nameOf(row: Row | RowOf<From>): string
  detailOf?(row: Row | RowOf<From>): ReactNode
  add: { operation: Add; input(ids: string[]): Input<Add> }
}

/** A button and the dialog behind it, in which some are looked for and chosen. */
export const AddSome = <From extends OperationId, Add extends OperationId, Row extends { id: string } = RowOf<From>>({
  kind,
  add,
  candidates,
  has = [],
  nameOf,
  detailOf,
}: AddSomeProps<From, Add, Row>) => {
  const dialog = useDialog(`add ${kind}`)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>([])
  const { operation, params, query, searchedBy = 'search', rowsOf } = candidates
  const searched = text && !rowsOf && { [searchedBy]: searchedBy === 'search' ? containing(text) : text }
  const input = { params, query: { ...query, page: 1, page_size: rowsOf ? 100 : 20, ...searched } }
  const { data, error } = useRead(operation, input as Input<From>, { when: dialog.isOpen })
  const change = useChange(add.operation)
  const all = rowsOf ? data && rowsOf(data.body) : (data?.body as readonly RowOf<From>[] | undefined)
  const rows = (all ?? []).filter(
    (row) => !has.includes(row.id) && (!rowsOf || nameOf(row).toLowerCase().includes(text.toLowerCase())),
  )
  const close = () => {
    setChosen([])
    setText('')
    dialog.close()
  }
  const confirm = () =>
    change.mutate(add.input([...chosen]), {
      onSuccess: () => {
        announce(chosen.length === 1 ? `The ${kind} is added.` : `${chosen.length} are added.`)
        close()
      },
    })
  return (
    <>
      <Allowed operation={add.operation}>
        <Button icon="plus" onPress={dialog.open}>
          Add
        </Button>
      </Allowed>
      <Dialog title={`Add a ${kind}`} isOpen={dialog.isOpen} onClose={close}>
        <ProblemNotice error={error ?? change.error} />
        <input
          className={style.search}
          type="search"
          dir="auto"
          aria-label={`Search for a ${kind}`}
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Choices
          rows={rows.map((row) => ({ key: row.id, name: nameOf(row), detail: detailOf?.(row) }))}
          chosen={chosen}
          onChange={setChosen}
        />
        {data && rows.length === 0 && <p>There is nothing else to add{text && ' with that name'}.</p>}
        <DialogActions>
          <CopyAsCurl operation={add.operation} input={add.input([...chosen])} />
          <Button onPress={close}>Cancel</Button>
          <Button kind="main" isDisabled={chosen.length === 0} isPending={change.isPending} onPress={confirm}>
            {chosen.length > 1 ? `Add ${chosen.length}` : 'Add'}
          </Button>
        </DialogActions>
      </Dialog>
    </>
  )
}
