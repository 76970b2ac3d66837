import { z } from 'zod'
import type { Setting } from '../../base/settings-store.ts'
import { sessionDefaults } from './session.ts'

const aYear = 365 * 86_400
const seconds = z.int().min(60).max(aYear)
const { ttl, idleTtl } = sessionDefaults

/** How long sessions last, in seconds. What is changed applies to those that begin, or are renewed, afterwards. */
export const sessionSettings = {
  name: 'session',
  schema: z.object({
    /** From signing in, whatever happens in it. */
    ttl: seconds.default(ttl),
    /** From the last time it was used. */
    idleTtl: seconds.default(idleTtl),
  }),
  /** The members to change. */
  patch: z.object({ ttl: seconds, idleTtl: seconds }).partial(),
} satisfies Setting<z.ZodType> & { patch: z.ZodType }
