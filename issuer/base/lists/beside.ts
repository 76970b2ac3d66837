import { problem } from '../errors/problems.ts'
import { id } from '../schemas.ts'
import { booleanText } from './search.ts'

/** Where a page of a long list begins, instead of counting all rows before it: next to a row that the caller has. */
export interface Beside {
  id: string
  side: 'after' | 'before'
}

/** The parameters of long lists. */
export const longListQuery = {
  after: id.describe('The page that follows this row. `page` then says only which one it is, for `Link`.').optional(),
  before: id.describe('The page that ends where this row begins.').optional(),
  /** Counts no further than 10 000 and says so in `Total-Number-Is-Capped`. */
  enableCap: booleanText.default(false),
}

export const besideOf = ({ after, before }: { after?: string | undefined; before?: string | undefined }) => {
  if (after !== undefined && before !== undefined)
    throw problem('guard.invalid_pagination', { detail: 'A page is after a row or before one.' })
  return after !== undefined
    ? ({ id: after, side: 'after' } as const)
    : before !== undefined
      ? ({ id: before, side: 'before' } as const)
      : undefined
}
