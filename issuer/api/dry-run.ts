import { z } from 'zod'
import { queryOf } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import { booleanText } from '../base/lists/search.ts'
import { parseInput } from '../base/parse-input.ts'
import type { DryRun, ManagementRoute, RouteResult } from '../base/route.ts'
import { type VersionedEntity, versionedAt } from '../base/versions/entities.ts'
import { type Counts, countConsequences, hasConsequences, hooksHearing } from '../directory/consequences-store.ts'

/** What a deletion would mean. */
export const rehearsal = z
  .object({
    /** What ends with the record, and who loses something: by the names of the table in `docs/management-api.md`. */
    consequences: z.record(z.string(), z.number().int()),
    /** How many events there would be of each type. */
    events: z.record(z.string(), z.number().int()),
    /** How many hooks would get one of them. */
    hooks: z.number().int(),
  })
  .meta({
    examples: [
      { consequences: { users: 12, applications: 0, permissions: 3 }, events: { 'Role.Deleted': 1 }, hooks: 2 },
    ],
  })

const asked = z.object({ dryRun: booleanText.default(false) })

/** The deletion of a record, not of what belongs to one. */
export const takesDryRun = ({ method, path }: Pick<ManagementRoute, 'method' | 'path'>): boolean => {
  const versioned = method === 'DELETE' ? versionedAt(path) : undefined
  return versioned?.isItself === true && hasConsequences(versioned.entity({}).kind)
}

/**
 * Whether the request only asks. Throws 400 where nobody can: a change must not be made because a parameter was not
 * understood.
 */
export const isDryRun = (definition: ManagementRoute, { dryRun }: Readonly<Record<string, unknown>>): boolean => {
  if (definition.method === 'GET' || dryRun === undefined) return false
  if (takesDryRun(definition)) return parseInput(asked, { dryRun }).dryRun
  throw problem('guard.invalid_input', { detail: 'dryRun: only deletions of records can be tried out' })
}

/** The work was done, and was undone. */
class Undone extends Error {
  readonly found: z.output<typeof rehearsal>
  constructor(found: z.output<typeof rehearsal>) {
    super('A dry run has ended.')
    this.found = found
  }
}

/**
 * The operation itself, in a transaction that is rolled back at its end: it is refused as it would be, and what is
 * counted is what it would do.
 */
export const rehearse = async (
  entity: VersionedEntity,
  work: (dryRun: DryRun) => Promise<unknown>,
): Promise<RouteResult> => {
  let counts: Counts = {}
  const dryRun: DryRun = {
    async begin(trx) {
      counts = await countConsequences(queryOf(trx), entity)
    },
    async end(trx, events) {
      const byType = Map.groupBy(events, ({ type }) => type)
      throw new Undone({
        consequences: counts,
        events: Object.fromEntries([...byType].map(([type, group]) => [type, group.length])),
        hooks: await hooksHearing(queryOf(trx), events),
      })
    },
  }
  try {
    await work(dryRun)
  } catch (error) {
    if (error instanceof Undone) return { status: 200, body: error.found }
    throw error
  }
  throw new Error('A dry run was not undone.')
}
