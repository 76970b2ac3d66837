import { z } from 'zod'
import type { Search } from './search.ts'

/**
 * What the lists about organizations are searched with: `q`, a text that one of the fields contains, in any case.
 * Empty: everything.
 */
export const keyword = z.string().max(256).optional()

export const keywordQuery = z.object({ q: keyword })

/** `%`, `_` and `\` mean themselves. */
export const keywordSearch = (q: string | undefined, fields: readonly string[]): Search | undefined =>
  q
    ? {
        joint: 'or',
        isCaseSensitive: false,
        conditions: [{ fields: [...fields], mode: 'like', values: [`%${q.replace(/[\\%_]/g, '\\$&')}%`] }],
      }
    : undefined
