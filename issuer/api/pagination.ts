import { problem } from '../base/errors/problems.ts'
import type { Page, Total } from '../base/lists/list-store.ts'

const defaultPageSize = 20
const maxPageSize = 100

type QueryString = Record<string, unknown>

const numberOf = (text: unknown, fallback: number, most: number): number => {
  if (text === undefined) return fallback
  const number = typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw problem('guard.invalid_pagination', {
    detail: `page counts from 1 and page_size lies between 1 and ${maxPageSize}.`,
  })
}

/**
 * `page` (from 1, default 1) and `page_size` (default 20, at most 100). With `optional`, nothing when neither is given:
 * the whole list.
 */
export const pageOf = (query: QueryString, paged: 'always' | 'optional'): Page | undefined => {
  const { page, page_size: pageSize } = query
  if (paged === 'optional' && page === undefined && pageSize === undefined) return undefined
  const number = numberOf(page, 1, 999_999_999)
  const size = numberOf(pageSize, defaultPageSize, maxPageSize)
  return { page: number, pageSize: size, limit: size, offset: (number - 1) * size }
}

/** Of `Link`, in characters: many proxies give all header fields of an answer 4 kB. */
const maxLinkLength = 2_048

/**
 * `Total-Number` and `Link` (RFC 8288) with first, prev, next and last. `url` is the address of this list, its query
 * included; of one that is too long to be repeated so often only next is told, or nothing.
 */
export const pageHeaders = (
  url: URL,
  { page, pageSize }: Page,
  { total, isCapped = false }: Total,
): Record<string, string> => {
  const last = Math.max(1, Math.ceil(total / pageSize))
  const link = (relation: string, target: number) => {
    const address = new URL(url)
    // Next to a row there is one page, and this is it.
    address.searchParams.delete('after')
    address.searchParams.delete('before')
    address.searchParams.set('page', String(target))
    address.searchParams.set('page_size', String(pageSize))
    return `<${address}>; rel="${relation}"`
  }
  const next = page < last ? [link('next', page + 1)] : []
  const prev = page > 1 ? [link('prev', Math.min(page - 1, last))] : []
  const all = [link('first', 1), ...prev, ...next, link('last', last)]
  const told = [all, next].map((links) => links.join(', ')).find((text) => text !== '' && text.length <= maxLinkLength)
  return {
    'Total-Number': String(total),
    ...(isCapped && { 'Total-Number-Is-Capped': 'true' }),
    ...(told && { Link: told }),
  }
}
