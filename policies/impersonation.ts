import { z } from 'zod'
import { storableText } from '../platform/validate.ts'
import { PolicyError } from './engine/index.ts'
import type { PolicySet } from './policy-set.ts'

export const impersonationEntrypoint = 'surrogate/impersonation/decision'

const person = {
  id: z.string(),
  roles: z.array(z.string()),
  organizations: z.array(z.string()).describe('Ids of those that the person is a member of.'),
}

/** What the impersonation policy is asked with, when a subject token is minted and again when it is exchanged. */
export const impersonationInputSchema = z.strictObject({
  version: z.literal(1),
  stage: z.enum(['mint', 'exchange']),
  subject: z.strictObject({
    ...person,
    isSuspended: z.boolean(),
    customData: z.record(z.string(), z.unknown()),
    managementScopes: z
      .array(z.string())
      .optional()
      .describe(
        'Permissions of the Management API that roles of the subject hold; absent when none. No token has them.',
      ),
  }),
  actor: z
    .strictObject({
      ...person,
      via: z
        .string()
        .optional()
        .describe(
          'Where an actor token was presented: sign_in, or what it came from: subject_token or personal_access_token.',
        ),
      clientId: z.string().optional().describe('The application that the actor token was issued to.'),
      acr: z
        .string()
        .optional()
        .describe('How the actor signed in. Absent when the actor token does not come of that.'),
      auth_time: z.number().optional().describe('When the actor signed in, in seconds since 1970; absent likewise.'),
      chain: z.array(z.string()),
    })
    .optional(),
  client: z
    .strictObject({ id: z.string(), type: z.string(), name: z.string() })
    .optional()
    .describe('At minting only when the request binds the token to one.'),
  creator: z.strictObject({ clientId: z.string() }),
  resource: z.string().optional(),
  organization: z
    .strictObject({ id: z.string() })
    .optional()
    .describe('At exchange: the organization that the token is for or, with a resource, counts in.'),
  scopes: z.array(z.string()),
  reason: z.string().optional(),
  ticket: z.string().optional(),
  context: z.record(z.string(), z.unknown()),
  approval: z
    .strictObject({
      id: z.string(),
      at: z.number().describe('When, in seconds since 1970.'),
      scopes: z
        .array(z.string())
        .optional()
        .describe('Those that the person saw. Absent: no request for some of them.'),
      maxTtl: z
        .number()
        .optional()
        .describe('How long the person allows it, in seconds. Absent: as long as tokens last.'),
      readOnly: z.boolean(),
    })
    .optional()
    .describe('What the subject agreed to, when they were asked. Its limits hold whatever the policy answers.'),
  now: z.number().describe('Seconds since 1970.'),
})
export type ImpersonationInput = z.infer<typeof impersonationInputSchema>

/** A refusal with this reason may be answered by signing in again, as `acr_values` and `max_age` say. */
export const stepUpRequired = 'step_up_required'

const impersonationDecision = z.strictObject({
  allow: z.boolean(),
  reason: storableText.max(256).optional(),
  /** Step-down: a subset of the scopes asked for. */
  scopes: z.array(z.string()).optional(),
  /** Seconds. */
  maxTtl: z.number().int().positive().optional(),
  /** The token only reads: claim `access`. */
  readOnly: z.boolean().optional(),
  /** What there must be before it is allowed, there already or not. */
  require: z.array(z.enum(['approval'])).optional(),
  /** Names of what speaks for it; they decide nothing, and are kept with the session. */
  grounds: z.array(storableText.max(256)).max(16).optional(),
  /** With `step_up_required`: for the authorization request that answers it (RFC 9470 §4); `max_age` in seconds. */
  acr_values: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/))
    .max(16)
    .optional(),
  max_age: z.number().int().min(0).optional(),
})
export type ImpersonationDecision = z.infer<typeof impersonationDecision>

/**
 * Asks the impersonation policy. Throws `PolicyError` when it gives no valid answer (→ 503: never allow). `scopes` of
 * an answer that names scopes nobody asked for is such an invalid answer.
 */
export const decideImpersonation = (set: PolicySet, input: ImpersonationInput): ImpersonationDecision => {
  const result = set.evaluate(impersonationEntrypoint, input)
  if (result === true) return { allow: true }
  const parsed = impersonationDecision.safeParse(result)
  if (!parsed.success) throw new PolicyError('the impersonation policy gave no valid decision', { cause: parsed.error })
  if (parsed.data.scopes?.some((scope) => !input.scopes.includes(scope))) {
    throw new PolicyError('the impersonation policy answered with scopes that were not asked for')
  }
  return parsed.data
}
