import { problem } from './errors/problems.ts'
import type { Beside } from './lists/list-store.ts'
import { booleanText } from './lists/search.ts'
import { id } from './schemas.ts'

/** The parameters of long lists. */
export const longListQuery = {
  after: id.describe('The page that follows this row. `page` then says only which one it is, for `Link`.').optional(),
  before: id.describe('The page that ends where this row begins.').optional(),
  /** Counts no further than 1 000 and says so in `Total-Number-Is-Capped`. */
  enableCap: booleanText.default(false),
}

/** Where the caller wants the page to begin. */
export const besideOf = ({
  after,
  before,
}: {
  after?: string | undefined
  before?: string | undefined
}): Beside | undefined => {
  if (after !== undefined && before !== undefined)
    throw problem('guard.invalid_pagination', { detail: 'A page is after a row or before one.' })
  if (after !== undefined) return { id: after, side: 'after' }
  return before === undefined ? undefined : { id: before, side: 'before' }
}
