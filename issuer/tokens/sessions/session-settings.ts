import { z } from 'zod'
import type { Setting } from '../../base/settings-store.ts'
import { sessionDefaults } from './session.ts'

const aYear = 365 * 86_400
const seconds = z.int().min(60).max(aYear)

/** How long sessions last, in seconds. What is changed applies to those that begin, or are renewed, afterwards. */
export const sessionSettings = {
  name: 'session',
  schema: z.object({
    /** From signing in, whatever happens in it. */
    ttl: seconds.default(sessionDefaults.ttl),
    /** From the last time it was used. */
    idleTtl: seconds.default(sessionDefaults.idleTtl),
  }),
} satisfies Setting<z.ZodType>

export type SessionSettings = z.output<typeof sessionSettings.schema>
