import { type ReactNode, useRef } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { Input, OperationId } from '../api/operations.ts'
import { useRead } from '../api/queries.ts'
import type { Calls } from '../generated/api.ts'
import { CopyAsCurl } from './copy.tsx'
import style from './entity-table.module.css'
import { type Filter, FilterBar, queryOf } from './filters.tsx'
import { isolated } from './isolated.tsx'
import { useKey } from './keys.ts'
import linked from './linked-rows.module.css'
import { ListPages, useListPage, useReturnByNumber } from './list-pages.tsx'
import { ProblemNotice } from './notice.tsx'
import { Loading } from './page.tsx'

export interface Column<Row> {
  title: string
  cell(row: Row): ReactNode
  /** Left out where there is little room. */
  isMinor?: boolean
}

type RowOf<Id extends OperationId> = Calls[Id]['answer'] extends readonly (infer Row)[] ? Row : never

export interface EntityTableProps<Id extends OperationId> {
  /** What the rows are: `Applications`. */
  title: string
  operation: Id
  params?: Calls[Id]['params']
  /** Of every page of the list, besides what the filters say. */
  query?: Input<Id>['query']
  /** There may be a million: counted no further than needed, and turned from row to row. The operation says so. */
  isLong?: boolean
  columns: readonly Column<RowOf<Id>>[]
  /** Where a row leads; its first cell is the link. */
  link?(row: RowOf<Id>): string
  filters?: readonly Filter[]
  /** While something in the rows is under way they are read again after so many ms. */
  everyMs?(rows: Calls[Id]['answer'] | undefined): number | false
  /** Instead of the table when there is nothing at all. */
  empty: ReactNode
}

/** A list as the server pages it; page and filters are in the address, so that it can be sent to somebody. */
export const EntityTable = <Id extends OperationId>(props: EntityTableProps<Id>) => {
  const { title, operation, params, query, isLong = false, columns, link, filters = [], everyMs, empty } = props
  const [search, setSearch] = useSearchParams()
  const { page, query: paging } = useListPage(isLong)
  const asked = queryOf(filters, search)
  const input = { params, query: { ...query, ...asked, ...paging } } as Input<Id>
  const { data, error, isPlaceholderData } = useRead(operation, input, { everyMs })
  useReturnByNumber(error)
  const body = useRef<HTMLTableSectionElement>(null)
  const rows = data?.body as readonly RowOf<Id>[] | undefined
  const total = data?.total ?? rows?.length ?? 0
  const step = (by: number) => {
    const links = [...(body.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])]
    links[Math.min(Math.max(links.indexOf(document.activeElement as HTMLElement) + by, 0), links.length - 1)]?.focus()
  }
  useKey({ keys: 'j', label: 'Next row' }, link && (() => step(1)))
  useKey({ keys: 'k', label: 'Row before' }, link && (() => step(-1)))

  const isAsked = Object.keys(asked).length > 0
  if (error && !isAsked) return <ProblemNotice error={error} />
  if (!rows && !isAsked) return <Loading lines={8} />
  if (!error && total === 0 && page === 1 && !isAsked) return empty
  return (
    <div className={style.list}>
      {filters.length > 0 && <FilterBar filters={filters} search={search} onChange={setSearch} />}
      {/* What is asked for can be put right. */}
      <ProblemNotice error={error} />
      <div className={linked.frame}>
        <table className={style.table} aria-label={title} aria-busy={isPlaceholderData}>
          <thead>
            <tr>
              {columns.map(({ title: name, isMinor }) => (
                <th key={name} scope="col" className={isMinor ? style.minor : undefined}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows?.map((row, index) => (
              <tr key={String((row as { id?: unknown }).id ?? index)}>
                {columns.map(({ title: name, cell, isMinor }, place) =>
                  place === 0 ? (
                    <th key={name} scope="row">
                      {link ? (
                        <Link href={link(row)} className={linked.link} data-row="">
                          {isolated(cell(row))}
                        </Link>
                      ) : (
                        isolated(cell(row))
                      )}
                    </th>
                  ) : (
                    <td key={name} className={isMinor ? style.minor : undefined}>
                      {isolated(cell(row))}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
        {rows?.length === 0 && (
          <p className={style.nothing}>
            {page > 1 ? 'There are no more.' : 'Nothing matches. Change or clear the filters.'}
          </p>
        )}
      </div>
      <footer className={style.foot}>
        <span>
          {data?.isCapped && 'more than '}
          {total.toLocaleString('en')} {total === 1 ? 'row' : 'rows'}
        </span>
        <CopyAsCurl operation={operation} input={input} />
        <ListPages page={page} isLong={isLong} answer={data} isShown={!isPlaceholderData} />
      </footer>
    </div>
  )
}
