import { z } from 'zod'
import { storableText } from '../platform/validate.ts'
import { PolicyError } from './engine/index.ts'
import type { PolicySet } from './policy-set.ts'

export const signInEntrypoint = 'surrogate/signin/decision'

/**
 * When the rules are asked: of a session that is about to answer by itself, before anybody is known, before the second
 * factor, before anything is committed.
 */
export const signInStages = ['session', 'prove', 'mfa', 'finish'] as const
export type SignInStage = (typeof signInStages)[number]

/** What rules may ask for, in the order in which people are asked. */
export const signInRequirements = ['captcha', 'mfa', 'phr', 'enrol'] as const
export type SignInRequirement = (typeof signInRequirements)[number]

export const mfaPolicies = ['Mandatory', 'PromptOnlyAtSignIn', 'PromptAtSignInAndSignUp', 'NoPrompt'] as const

/** What the sign-in rules are asked with. A member without a value is absent. */
export const signInInputSchema = z.strictObject({
  version: z.literal(1),
  stage: z.enum(signInStages),
  client: z.strictObject({ id: z.string(), name: z.string(), type: z.string(), isThirdParty: z.boolean() }),
  subject: z
    .strictObject({
      id: z.string(),
      roles: z.array(z.string()),
      organizations: z.array(z.string()).describe('Ids of those that the person is a member of.'),
    })
    .optional()
    .describe('Absent at the stage prove, and while somebody registers.'),
  factors: z.strictObject({
    available: z
      .array(z.string())
      .describe('Kinds of second factor that the person has and the settings allow: passkey, totp, backup_code, …'),
    used: z
      .array(z.string())
      .describe('Kinds of proof that the person gave in this sign-in; none at the stage session.'),
  }),
  federation: z
    .strictObject({ connector: z.string(), kind: z.enum(['social', 'sso']), target: z.string() })
    .optional()
    .describe('The identity provider that vouches for the person in this sign-in: `sso` of an enterprise.'),
  amr: z.array(z.string()).describe('What the proofs so far say (RFC 8176), or those with which the session began.'),
  acr: z.string().optional().describe('What those reach. Absent while there is none.'),
  ip: z.string(),
  country: z.string().optional().describe('As a trusted proxy says (X-Logto-Cf-Country).'),
  device: z.strictObject({ known: z.boolean().describe('The person has signed in with this browser before.') }),
  failures: z.number().int().min(0).describe('Failed attempts in a row, of this person or on this identifier.'),
  now: z.number().describe('Seconds since 1970.'),
  settings: z.strictObject({
    mfa: z.strictObject({
      policy: z.enum(mfaPolicies),
      factors: z.array(z.string()).describe('Kinds of second factor that are enabled.'),
      organizationPolicy: z
        .enum(['NoPrompt', 'Mandatory'])
        .describe('For members of organizations with isMfaRequired.'),
      organizations: z.array(z.string()).describe('Ids of those of the person that have isMfaRequired.'),
    }),
  }),
})
export type SignInInput = z.infer<typeof signInInputSchema>

const seconds = z.number().int().positive()

/** Strict: a misspelt member must not silently do nothing. */
const signInDecision = z.strictObject({
  allow: z.boolean(),
  reason: storableText.max(256).optional(),
  require: z.array(z.enum(signInRequirements)).default([]),
  session: z.strictObject({ idle: seconds.optional(), absolute: seconds.optional() }).default({}),
})

export interface SignInDecision {
  allow: boolean
  /** Why not: for the answer, the audit and the log. */
  reason?: string | undefined
  /** What the sign-in must have, done or not; each once, in the order in which people are asked. */
  require: readonly SignInRequirement[]
  /** In seconds: how long the new session may last at most, without use and at all. */
  session: { idle?: number | undefined; absolute?: number | undefined }
}

/** Asks the sign-in rules. Throws `PolicyError` when they give no valid answer (→ 503: never allow). */
export const askSignInRules = (set: PolicySet, input: SignInInput): SignInDecision =>
  readSignInDecision(set.evaluate(signInEntrypoint, input))

/** A bare `true` allows and asks for nothing. Throws `PolicyError` for what is no decision. */
export const readSignInDecision = (result: unknown): SignInDecision => {
  if (result === true) return { allow: true, require: [], session: {} }
  const parsed = signInDecision.safeParse(result)
  if (!parsed.success) throw new PolicyError('the sign-in rules gave no valid decision', { cause: parsed.error })
  const { require, ...decision } = parsed.data
  return { ...decision, require: signInRequirements.filter((name) => require.includes(name)) }
}
