import { z } from 'zod'
import { userProfile } from '../directory/users/user.ts'
import { proofKindNames } from './proofs.ts'

export const interactionNotices = ['password_changed', 'username_taken', 'email_taken', 'phone_taken'] as const
export type InteractionNotice = (typeof interactionNotices)[number]

/**
 * Why a sign-in by an identity provider did not end with its answer. `prove_first`: an account has the address, and
 * has to be proven before the identity becomes its own.
 */
export const federationOutcomes = [
  'denied',
  'failed',
  'unavailable',
  'no_account',
  'email_refused',
  'prove_first',
] as const
export type FederationOutcome = (typeof federationOutcomes)[number]

/** What the person decided so far; each decision names what it was about, and counts for nothing else. */
export const interactionState = z.object({
  /** "Keep me signed in". */
  keep: z.boolean().optional(),
  /** The session that is to be gone on with; false: with another account. */
  account: z.union([z.object({ sessionId: z.string() }), z.literal(false)]).optional(),
  consent: z.object({ userId: z.string(), isAllowed: z.boolean(), organizationIds: z.array(z.string()) }).optional(),
  isCancelled: z.boolean().optional(),
  /** The terms of use were agreed to. */
  terms: z.boolean().optional(),
  /** A second factor, where that is the person's choice, is not wanted now. */
  skipsMfa: z.boolean().optional(),
  /** The browser can make passkeys. Unless it said so nobody is offered one: they could not go on with it. */
  makesPasskeys: z.boolean().optional(),
  /** A passkey is not wanted now. */
  skipsPasskey: z.boolean().optional(),
  /** The second factor that the person wants to use, or to add, where there are several; null: to choose again. */
  factor: z.enum(proofKindNames).nullable().optional(),
  /** Whom the Experience API was told that it is about; `newPerson` for somebody new. */
  identified: z.string().optional(),
  /** A captcha was solved. */
  captcha: z.boolean().optional(),
  /** What the next page tells: of a reset that succeeded, or of what somebody else has. */
  notice: z.enum(interactionNotices).optional(),
  /** What came of asking a provider, for the next page; null: nothing yet. */
  federation: z
    .object({
      outcome: z.enum(federationOutcomes),
      /** As pages name it. */
      provider: z.string(),
      /** `prove_first`: that both have. */
      email: z.string().optional(),
      /** What the provider says. */
      text: z.string().optional(),
    })
    .nullable()
    .optional(),
})
export type InteractionState = z.output<typeof interactionState>

/** What an interaction is for; the names of existing clients (`interactionEvent`). */
export const interactionEvents = ['SignIn', 'Register', 'ForgotPassword'] as const
export type InteractionEventName = (typeof interactionEvents)[number]

/** What people may say of themselves. Everything else is left out. */
export const stagedProfile = z.object({
  name: z.string().optional(),
  avatar: z.string().optional(),
  ...userProfile.shape,
})

/** What becomes of the person when the interaction finishes, beside the factors and addresses that proofs bind. */
export const staged = z.object({
  username: z.string().optional(),
  password: z.object({ digest: z.string(), algorithm: z.literal('Argon2id') }).optional(),
  /** By which the Experience API names the user name and password of somebody new. */
  identityId: z.string().optional(),
  profile: stagedProfile.optional(),
})
export type Staged = z.output<typeof staged>
