import { z } from 'zod'
import { interactionEvents } from '../../interaction/interaction-state.ts'
import { proofKindNames, proofPurposes, recordTypes } from '../../interaction/proofs.ts'

/** What calls of the Experience API answer. Only the API description reads these; members may be added. */

const identifier = z.object({ type: z.enum(['username', 'email', 'phone']), value: z.string() })
const verificationId = z.string()

/** By which later calls name what was proven, or what waits to be. */
export const verification = z.object({ verificationId })

/** What is due now, and what leads on. */
export const step = z.object({
  step: z.string().describe('`sign_in`, `register`, `mfa`, `enrol`, …, `done`. There may be others one day.'),
  reasons: z.array(z.string()),
  options: z.object({
    proofs: z.array(z.enum(proofKindNames)).optional().describe('The kinds of proof that lead on.'),
    factors: z.array(z.string()).optional().describe('The factors that may be added.'),
    isSkippable: z.boolean().optional(),
    isConditional: z.boolean().optional().describe('`passkey`: the browser may make it by itself.'),
    missing: z.array(z.string()).optional().describe('What is missing in the profile.'),
    error: z.string().optional(),
    description: z.string().optional(),
  }),
})

const recordType = z.enum(recordTypes)

export const interactionAnswer = z.object({
  interactionEvent: z.enum(interactionEvents),
  userId: z.string().optional().describe('Whom `/identification` named, while signing in.'),
  profile: z.object({
    username: z.string().optional(),
    primaryEmail: z.string().optional(),
    primaryPhone: z.string().optional(),
    hasPassword: z.boolean(),
  }),
  mfa: z.object({ added: z.array(recordType), mfaSkipped: z.boolean(), passkeySkipped: z.boolean() }),
  verificationRecords: z.array(
    z.object({
      id: z.string(),
      type: recordType,
      verified: z.literal(true),
      purpose: z.enum(proofPurposes),
      identifier: identifier.optional(),
    }),
  ),
  captcha: z.object({
    verified: z.boolean(),
    challenge: z
      .discriminatedUnion('provider', [
        z.object({ provider: z.literal('proof_of_work'), challenge: z.string(), difficulty: z.int() }),
        z.object({ provider: z.literal('turnstile'), siteKey: z.string(), action: z.string(), data: z.string() }),
      ])
      .optional()
      .describe('There while a test for machines is due.'),
  }),
  next: step,
})

/** What `navigator.credentials` takes (WebAuthn §5.1), bytes as base64url. */
const browserOptions = (example: string) =>
  z.looseObject({ challenge: z.string(), timeout: z.int() }).describe(`For \`PublicKeyCredential.${example}\`.`)

export const authenticationAnswer = verification.extend({
  authenticationOptions: browserOptions('parseRequestOptionsFromJSON'),
})
export const registrationAnswer = verification.extend({
  registrationOptions: browserOptions('parseCreationOptionsFromJSON'),
})
export const totpSecretAnswer = verification.extend({
  secret: z.string().describe('Base32.'),
  secretQrCode: z.string().describe('A picture of the `otpauth:` address, as a `data:` address.'),
})
export const backupCodesAnswer = verification.extend({ codes: z.array(z.string()) })
export const authorizationUriAnswer = verification.extend({
  authorizationUri: z.url().describe('Where the browser goes: the page of the provider.'),
})
export const connectorIdsAnswer = z.object({ connectorIds: z.array(z.string()) })
export const redirectAnswer = z.object({ redirectTo: z.url().describe('Where the browser goes from here.') })
