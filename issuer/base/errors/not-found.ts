import { problem } from './problems.ts'

/** What is said when an id leads nowhere: one in the path, one to delete or unlink, some in the body. */

export const unknownId = (id: string) => problem('entity.not_exists_with_id', { data: { id } })

export const notFound = (id: string) => problem('entity.not_found', { data: { id } })

/** Existing clients expect this of the routes of organizations. */
export const relatedStatus = { 'entity.relation_foreign_key_not_found': 422 } as const

export const unknownRelated = (ids: readonly string[]) =>
  problem('entity.relation_foreign_key_not_found', {
    status: relatedStatus['entity.relation_foreign_key_not_found'],
    data: { id: ids[0], ids },
  })

/** Throws `unknownRelated` for those of `ids` that are not among `found`. */
export const requireAll = (ids: readonly string[], found: readonly { id: string }[]): void => {
  const known = new Set(found.map(({ id }) => id))
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length > 0) throw unknownRelated(unknown)
}
