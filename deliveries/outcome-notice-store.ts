import { z } from 'zod'
import { type Query, statement } from '../platform/database/database.ts'

/**
 * What relays tell of attempts, so that whoever watches hooks need not look for them. It is told a few times a second
 * and not within a transaction (`events/notifier.ts` says why), and may be lost.
 */
export const outcomesChannel = 'surrogate_outcomes'

export const hookOutcome = z.object({ hookId: z.string(), succeeded: z.number(), failed: z.number() })
export type HookOutcome = z.output<typeof hookOutcome>

const announce = statement('outcomes-announce', `SELECT pg_notify('${outcomesChannel}', $1)`)

/** Hooks of one announcement, which has less than 8 000 bytes. */
const perAnnouncement = 80

export const announceOutcomes = async (query: Query, outcomes: readonly HookOutcome[]): Promise<void> => {
  for (let from = 0; from < outcomes.length; from += perAnnouncement)
    await query(announce, [JSON.stringify(outcomes.slice(from, from + perAnnouncement))])
}

/** Nothing of what is not an announcement: one of another version, or a wake-up without any. */
export const readOutcomes = (payload: string): HookOutcome[] => {
  try {
    return z.array(hookOutcome).safeParse(JSON.parse(payload)).data ?? []
  } catch {
    return []
  }
}
