import { z } from 'zod'

/** What the person decided so far; each decision names what it was about, and counts for nothing else. */
export const interactionState = z.object({
  /** "Keep me signed in". */
  keep: z.boolean().optional(),
  /** The session that is to be gone on with; false: with another account. */
  account: z.union([z.object({ sessionId: z.string() }), z.literal(false)]).optional(),
  consent: z.object({ userId: z.string(), isAllowed: z.boolean(), organizationIds: z.array(z.string()) }).optional(),
  isCancelled: z.boolean().optional(),
})
export type InteractionState = z.output<typeof interactionState>
