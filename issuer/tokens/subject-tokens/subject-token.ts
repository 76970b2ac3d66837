import { z } from 'zod'
import { depthOf, storableText } from '../../../platform/validate.ts'
import { isIndicator } from '../../base/indicator.ts'
import { id, timestamp } from '../../base/schemas.ts'

const maxContextBytes = 8_192
const maxContextDepth = 8

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Free-form; kept as it was sent, so that a member called `__proto__` is a member and nothing else. */
const context = z
  .custom<Record<string, unknown>>(isPlainObject, 'must be a JSON object')
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= maxContextBytes,
    `must be at most ${maxContextBytes} bytes`,
  )
  .refine((value) => depthOf(value) <= maxContextDepth, `must be nested at most ${maxContextDepth} deep`)
  .meta({
    type: 'object',
    additionalProperties: true,
    description: `Free-form, at most ${maxContextBytes} bytes and nested ${maxContextDepth} deep.`,
  })

const scopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'must be a scope name')

/**
 * Members beside `userId` and `context` bind the token: the exchange must match them. `actorToken` is the access token
 * of whoever is to act; the policy hears how they signed in. Or `requestId` alone, when the user has agreed.
 */
export const subjectTokenRequest = z.union([
  z.object({
    userId: storableText.min(1).max(128),
    context: context.default({}),
    clientId: storableText.min(1).max(21).optional(),
    resource: storableText.max(2048).refine(isIndicator, 'must be an absolute URI without a fragment').optional(),
    scopes: z.array(scopeName).max(256).optional(),
    actorId: storableText.min(1).max(12).optional(),
    actorToken: z.string().min(1).max(16_384).optional(),
    reason: storableText.min(1).max(1024).optional(),
    ticket: storableText.min(1).max(256).optional(),
    requestId: z.never('cannot stand beside userId').optional(),
  }),
  z.strictObject({ requestId: id }),
])
export type SubjectTokenRequest = z.output<typeof subjectTokenRequest>

export const subjectTokenAnswer = z.object({
  subjectToken: z.string(),
  /** In seconds. */
  expiresIn: z.number().int(),
})

/** The user was asked. The token is minted for `requestId` once they have agreed. */
export const pendingAnswer = z.object({
  requestId: z.string(),
  status: z.literal('pending'),
  /** In ms. */
  expiresAt: timestamp,
  /** For whoever is to act: the user compares it with what they see. */
  number: z.string(),
})
