import { useEffect } from 'react'
import { useSearchParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import type { Answer } from '../api/call.ts'
import { isProblem } from '../api/problem.ts'
import { Button } from './button.tsx'
import style from './entity-table.module.css'
import { useKey } from './keys.ts'

export const pageSize = 20

/** Until this page rows are counted from the start, which takes no time there. */
const countedPages = 50

/** Where the page begins: next to a row of the one that was left. */
type Beside = Partial<Record<'after' | 'before', string>>

/** Which page of a list is shown. Its number is in the address, which can be sent to somebody. */
export const useListPage = (isLong: boolean): { page: number; query: Record<string, string | number | boolean> } => {
  const [search] = useSearchParams()
  const state = useHistoryState<{ beside?: Beside } | null>()
  const page = Math.max(1, Number(search.get('page')) || 1)
  const beside = isLong && page > countedPages ? state?.beside : undefined
  return { page, query: { page, page_size: pageSize, ...(isLong && { enableCap: true }), ...beside } }
}

/** Where the row is gone that the page begins next to, the number of the page says where it is. */
export const useReturnByNumber = (error: unknown): void => {
  const [, setSearch] = useSearchParams()
  const isGone = isProblem(error, 'entity.not_exists_with_id')
  useEffect(() => {
    if (isGone && history.state?.beside) setSearch((before) => before, { replace: true, state: null })
  }, [isGone, setSearch])
}

interface ListPagesProps {
  page: number
  isLong: boolean
  answer: Answer<unknown> | undefined
  /** False: what is shown is still the page that was left. */
  isShown: boolean
}

/** The way to the other pages. */
export const ListPages = ({ page, isLong, answer, isShown }: ListPagesProps) => {
  const [, setSearch] = useSearchParams()
  const rows = (answer?.body ?? []) as readonly { id?: string }[]
  const pages = Math.max(1, Math.ceil((answer?.total ?? rows.length) / pageSize))
  const hasNext = page < pages || (answer?.isCapped === true && rows.length === pageSize)
  const turn = (to: number, side: 'after' | 'before', id: string | undefined) =>
    setSearch((before) => withPage(before, to), {
      state: isLong && isShown && id !== undefined ? { beside: { [side]: id } } : null,
    })
  const forth = () => turn(page + 1, 'after', rows.at(-1)?.id)
  const back = () => turn(page - 1, 'before', rows[0]?.id)
  useKey({ keys: 'n', label: 'Next page' }, hasNext ? forth : undefined)
  useKey({ keys: 'p', label: 'Page before' }, page > 1 ? back : undefined)
  if (page === 1 && !hasNext) return null
  return (
    <nav className={style.turn} aria-label="Pages of the list">
      <Button kind="quiet" icon="left" label="Page before" isDisabled={page < 2} onPress={back} />
      <span>
        Page {page.toLocaleString('en')} of {answer?.isCapped && 'more than '}
        {pages.toLocaleString('en')}
      </span>
      <Button kind="quiet" icon="right" label="Next page" isDisabled={!hasNext} onPress={forth} />
    </nav>
  )
}

const withPage = (before: URLSearchParams, page: number): URLSearchParams => {
  const search = new URLSearchParams(before)
  if (page > 1) search.set('page', String(page))
  else search.delete('page')
  return search
}
