import { type Query, statement } from '../../../platform/database/database.ts'

/**
 * A data-modifying part of a statement: erases up to 100 successors (`successor.ts`) whose leeway, an SQL expression in
 * seconds, is over. Rows that somebody else is at are theirs.
 */
export const erasedSuccessors = (leeway: string): string => `erased AS (
     UPDATE refresh_tokens SET successor = NULL
     WHERE digest = ANY (ARRAY(
       SELECT digest FROM refresh_tokens WHERE successor IS NOT NULL AND rotated_at < now() - ${leeway} * interval '1 second'
       LIMIT 100 FOR UPDATE SKIP LOCKED))
     RETURNING digest)`

const erase = statement('refresh-successors-erase', `WITH ${erasedSuccessors('$1::integer')} SELECT digest FROM erased`)

/** Erases successors whose leeway is over, 100 at a time. Answers how many there were; rotating does the same. */
export const eraseSuccessors = async (query: Query, leewaySeconds: number): Promise<number> =>
  (await query(erase, [leewaySeconds])).length
