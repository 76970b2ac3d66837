import { z } from 'zod'
import { type Clock, toSeconds } from '../../../platform/clock.ts'
import { randomToken } from '../../../platform/ids.ts'
import { AppError } from '../../../platform/problem.ts'
import { depthOf, storableText } from '../../../platform/validate.ts'
import type { AuditEntry } from '../../base/audit/log-store.ts'
import type { TokenAudit } from '../../base/audit/token-audit.ts'
import { problem } from '../../base/errors/problems.ts'
import { isIndicator } from '../../base/indicator.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import { tokenDigest } from '../token-digest.ts'
import type { ImpersonationPolicy } from './impersonation-policy.ts'
import { findMintFacts, insertSubjectToken, type MintFacts } from './subject-token-store.ts'

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

/** Members beside `userId` and `context` bind the token: the exchange must match them. */
export const subjectTokenRequest = z.object({
  userId: storableText.min(1).max(128),
  context: context.default({}),
  clientId: storableText.min(1).max(21).optional(),
  resource: storableText.max(2048).refine(isIndicator, 'must be an absolute URI without a fragment').optional(),
  scopes: z.array(scopeName).max(256).optional(),
  actorId: storableText.min(1).max(12).optional(),
  reason: storableText.min(1).max(1024).optional(),
  ticket: storableText.min(1).max(256).optional(),
})
export type SubjectTokenRequest = z.output<typeof subjectTokenRequest>

export const subjectTokenAnswer = z.object({
  subjectToken: z.string(),
  /** In seconds. */
  expiresIn: z.number().int(),
})

export interface SubjectTokenDependencies {
  mutate: Mutate
  /** Of refused requests; the row of one that succeeds is written with it. */
  audit: TokenAudit
  policy: ImpersonationPolicy
  /** In seconds. */
  subjectTokenTtl: number
  now: Clock
}

/** Mints subject tokens: `sub_` and 256 random bits, known to us by digest only, for one use within `subjectTokenTtl`. */
export const subjectTokenOperations = ({ mutate, audit, policy, subjectTokenTtl, now }: SubjectTokenDependencies) => ({
  mint: (input: SubjectTokenRequest, request: OperationContext): Promise<z.output<typeof subjectTokenAnswer>> =>
    mutate(request, async ({ trx, note }) => {
      note({ userId: input.userId, details: particulars(input) })
      const facts = await findMintFacts(trx, input)
      const { subject } = facts
      if (!subject) {
        throw problem('entity.relation_foreign_key_not_found', { detail: 'There is no user with this userId.' })
      }
      if (subject.isSuspended) throw problem('user.suspended')
      requirePermission(policy, { ...facts, subject }, input, request.caller.clientId, toSeconds(now()))
      const subjectToken = randomToken('sub_')
      await insertSubjectToken(trx, {
        ...input,
        digest: tokenDigest('subject-token', subjectToken),
        creatorId: request.caller.clientId,
        ttl: subjectTokenTtl,
      })
      return { subjectToken, expiresIn: subjectTokenTtl }
    }).catch((error: unknown) => {
      // Who asked and was refused belongs into the trail; the transaction with the row of the change is gone.
      if (error instanceof AppError) audit.record(refusedEntry(input, request, error))
      throw error
    }),
})

/** Why, and what the token is bound to. */
const particulars = ({ actorId, clientId, resource, scopes, reason, ticket }: SubjectTokenRequest) => ({
  actorId,
  boundClientId: clientId,
  resource,
  scopes,
  reason,
  ticket,
})

const refusedEntry = (
  input: SubjectTokenRequest,
  { operationId, caller, request }: OperationContext,
  { code, detail, data }: AppError,
): AuditEntry => ({
  key: `Management.${operationId}`,
  result: 'Error',
  applicationId: caller.clientId,
  userId: input.userId,
  payload: {
    ip: request.ip,
    userAgent: request.userAgent,
    subject: caller.subject,
    method: request.method,
    path: request.path,
    error: { code, message: detail, data },
    ...particulars(input),
  },
})

/**
 * Throws 403 when the policy refuses, 503 when it cannot be asked. Its `scopes` and `maxTtl` count at the exchange,
 * where it is asked again.
 */
const requirePermission = (
  policy: ImpersonationPolicy,
  { subject, actor, client }: MintFacts & { subject: NonNullable<MintFacts['subject']> },
  { scopes = [], resource, reason, ticket, context }: SubjectTokenRequest,
  creatorId: string,
  now: number,
) => {
  if (!policy.enabled) return
  const decision = policy.decide({
    stage: 'mint',
    subject,
    ...(actor && { actor: { ...actor, chain: [actor.id] } }),
    ...(client && { client }),
    creator: { clientId: creatorId },
    ...(resource !== undefined && { resource }),
    scopes: [...scopes],
    ...(reason !== undefined && { reason }),
    ...(ticket !== undefined && { ticket }),
    context,
    now,
  })
  if (decision === 'unavailable') throw problem('impersonation.policy_unavailable')
  if (!decision.allow) {
    throw problem('impersonation.denied', { detail: decision.reason, data: { reason: decision.reason ?? null } })
  }
}
