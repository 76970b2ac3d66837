import { isDeepStrictEqual } from 'node:util'
import { problem } from './errors/problems.ts'

/**
 * The members of `patch` that differ from `current`; nothing when it changes nothing. Throws 422 `entity.invalid_input`
 * for an empty patch.
 */
export const changesOf = <Row extends object>(current: Row, patch: Partial<Row>): Partial<Row> | undefined => {
  const given = Object.entries(patch).filter(([, value]) => value !== undefined)
  if (given.length === 0) throw problem('entity.invalid_input', { detail: 'There is nothing to change.' })
  const changed = given.filter(([name, value]) => !isDeepStrictEqual(value, current[name as keyof Row]))
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as Partial<Row>)
}
