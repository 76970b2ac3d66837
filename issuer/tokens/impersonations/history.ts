import { z } from 'zod'
import { id, timestamp } from '../../base/schemas.ts'

/** What the impersonation policy said when it allowed something, as it is kept with the session. */
export const policyAnswer = z.object({
  asked: z.boolean().describe('False: no policy is configured, and whoever mints decides alone.'),
  revision: z.string().describe('Of the policies.').optional(),
  rule: z.string().describe('The entrypoint that was asked.').optional(),
  reason: z.string().optional(),
  grounds: z.array(z.string()).describe('What speaks for it, as the rules name it.').optional(),
  require: z.array(z.string()).describe('What there had to be: `approval`.').optional(),
  scopes: z.array(z.string()).describe('What it left of those that were asked for. Absent: all.').optional(),
  maxTtl: z.number().describe('How long it allowed, in seconds. Absent: as long as tokens last.').optional(),
  readOnly: z.boolean().optional(),
})
export type PolicyAnswer = z.output<typeof policyAnswer>

/** The request for the subject token of a session. */
export const minted = z.object({
  at: timestamp,
  personId: id.describe('Who asked for it in the console. Absent: an application by itself.').optional(),
  policy: policyAnswer,
})
export type Minted = z.output<typeof minted>
