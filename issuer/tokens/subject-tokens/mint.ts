import type { z } from 'zod'
import { type Clock, toSeconds } from '../../../platform/clock.ts'
import { type Query, queryOf } from '../../../platform/database/database.ts'
import { randomToken } from '../../../platform/ids.ts'
import { AppError } from '../../../platform/problem.ts'
import { type ImpersonationDecision, stepUpRequired } from '../../../policies/impersonation.ts'
import type { AuditEntry } from '../../base/audit/log-store.ts'
import type { TokenAudit } from '../../base/audit/token-audit.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate, Mutation } from '../../base/mutate.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import type { Caller, OperationContext } from '../../base/route.ts'
import type { AccessTokenVerifier } from '../access-token.ts'
import type { Approval } from '../impersonation-requests/approval.ts'
import type { ActorFacts, AskedFor, RequestRow } from '../impersonation-requests/request-store.ts'
import { openRequest, takeApproval } from '../impersonation-requests/requests.ts'
import { findParties } from '../impersonations/parties-store.ts'
import { tokenDigest } from '../token-digest.ts'
import { readActorToken } from './actor-token.ts'
import { type ImpersonationPolicy, keptAnswer, type RevisedDecision } from './impersonation-policy.ts'
import type { pendingAnswer, SubjectTokenRequest, subjectTokenAnswer } from './subject-token.ts'
import { findMintFacts, insertSubjectToken, type MintFacts } from './subject-token-store.ts'

export interface SubjectTokenDependencies {
  mutate: Mutate
  verifier: AccessTokenVerifier
  /** Of refused requests; the row of one that succeeds is written with it. */
  audit: TokenAudit
  policy: ImpersonationPolicy
  notifyOwner: NotifyOwner
  /** `BASE_URL`, for the address where people agree. */
  baseUrl: string
  /** In seconds. */
  subjectTokenTtl: number
  now: Clock
}

/** What a subject token is asked for with, and what is known of whoever is to act. */
interface Asked extends AskedFor {
  actor: ActorFacts | undefined
  approval: Approval | undefined
}

type Minted =
  | { status: 201; body: z.output<typeof subjectTokenAnswer> }
  | { status: 202; body: z.output<typeof pendingAnswer> }

/** Where people look at requests to act as them. */
export const requestsPath = '/account/impersonations'

/**
 * Mints subject tokens: `sub_` and 256 random bits, known to us by digest only, for one use within `subjectTokenTtl`.
 * Where the policy wants that the user agrees they are asked instead, and the token is minted when the request is
 * named.
 */
export const subjectTokenOperations = (dependencies: SubjectTokenDependencies) => {
  const { mutate, verifier, audit, policy, notifyOwner, baseUrl, subjectTokenTtl, now } = dependencies

  const askedBy = async (mutation: Mutation, input: SubjectTokenRequest, creatorId: string): Promise<Asked> => {
    if (input.requestId !== undefined) {
      const { actor, ...taken } = await takeApproval(mutation, { id: input.requestId, creatorId })
      return { ...taken, actor: actor ?? undefined }
    }
    const { actorToken, ...asked } = input
    if (actorToken === undefined) return { ...asked, actor: undefined, approval: undefined }
    const actor = await readActorToken(queryOf(mutation.trx), verifier, actorToken)
    if (asked.actorId !== undefined && asked.actorId !== actor.id) throw problem('impersonation.actor_token_invalid')
    return { ...asked, actorId: actor.id, actor: actor.facts, approval: undefined }
  }

  const mint = async (
    { trx }: Mutation,
    asked: Asked,
    { clientId: creatorId, person }: Caller,
    decision: RevisedDecision,
  ): Promise<Minted> => {
    const subjectToken = randomToken('sub_')
    const digest = tokenDigest('subject-token', subjectToken)
    const minted = { at: now().getTime(), personId: person?.userId, policy: keptAnswer(decision) }
    await insertSubjectToken(trx, { ...asked, digest, creatorId, minted, ttl: subjectTokenTtl })
    return { status: 201, body: { subjectToken, expiresIn: subjectTokenTtl } }
  }

  const ask = async (mutation: Mutation, asked: Asked, creatorId: string): Promise<Minted> => {
    const row = await openRequest(mutation, { ...asked, creatorId })
    await tell(queryOf(mutation.trx), row)
    const { id: requestId, expiresAt, number } = row
    return { status: 202, body: { requestId, status: 'pending', expiresAt: expiresAt.getTime(), number } }
  }

  const tell = async (query: Query, { userId, actorId, creatorId, reason, number }: RequestRow) => {
    const owner = await findParties(query, { subjectId: userId, actorId, clientId: creatorId })
    if (!owner) return
    const link = `${baseUrl}${requestsPath}`
    await notifyOwner(query, owner, { type: 'ImpersonationRequested', actor: owner.actor, reason, number, link })
  }

  return {
    mint: (input: SubjectTokenRequest, request: OperationContext): Promise<Minted> => {
      const creatorId = request.caller.clientId
      let known: Asked | undefined
      const work = async (mutation: Mutation): Promise<Minted> => {
        known = await askedBy(mutation, input, creatorId)
        mutation.note({ userId: known.userId, details: particulars(known) })
        const facts = await findMintFacts(mutation.trx, known)
        const { subject } = facts
        if (!subject) {
          throw problem('entity.relation_foreign_key_not_found', { detail: 'There is no user with this userId.' })
        }
        if (subject.isSuspended) throw problem('user.suspended')
        const decision = requirePermission(policy, { ...facts, subject }, known, creatorId, toSeconds(now()))
        const mustAgree = decision.require?.includes('approval') ?? false
        return mustAgree && !known.approval
          ? ask(mutation, known, creatorId)
          : mint(mutation, known, request.caller, decision)
      }
      return mutate(request, work).catch((error: unknown) => {
        // Who asked and was refused belongs into the trail; the transaction with the row of the change is gone.
        if (error instanceof AppError) audit.record(refusedEntry(known ?? input, request, error))
        throw error
      })
    },
  }
}

/** Why, and what the token is bound to. Never the actor's token. */
const particulars = ({
  actorId,
  clientId,
  resource,
  scopes,
  reason,
  ticket,
  approval,
}: Partial<AskedFor> & { approval?: Approval | undefined }) => ({
  actorId,
  boundClientId: clientId,
  resource,
  scopes,
  reason,
  ticket,
  approvalId: approval?.id,
})

const refusedEntry = (
  asked: Asked | SubjectTokenRequest,
  { operationId, caller, request }: OperationContext,
  { code, detail, data }: AppError,
): AuditEntry => ({
  key: `Management.${operationId}`,
  result: 'Error',
  applicationId: caller.clientId,
  userId: 'userId' in asked ? asked.userId : undefined,
  payload: {
    ip: request.ip,
    userAgent: request.userAgent,
    subject: caller.subject,
    method: request.method,
    path: request.path,
    error: { code, message: detail, data },
    ...('userId' in asked ? particulars(asked) : asked),
  },
})

/**
 * What allows it. Throws 403 when the policy refuses, 503 when it cannot be asked. Its `scopes`, `maxTtl` and
 * `readOnly` count at the exchange, where it is asked again.
 */
const requirePermission = (
  policy: ImpersonationPolicy,
  {
    subject: { managementScopes, ...subject },
    actor,
    client,
  }: MintFacts & {
    subject: NonNullable<MintFacts['subject']>
  },
  { scopes = [], resource, reason, ticket, context, actor: shown, approval }: Asked,
  creatorId: string,
  now: number,
): RevisedDecision => {
  if (!policy.enabled) return { allow: true }
  const decision = policy.decide({
    stage: 'mint',
    subject: { ...subject, ...(managementScopes.length > 0 && { managementScopes }) },
    ...(actor && { actor: { ...actor, chain: [actor.id], ...shown } }),
    ...(client && { client }),
    creator: { clientId: creatorId },
    ...(resource !== undefined && { resource }),
    scopes: [...scopes],
    ...(reason !== undefined && { reason }),
    ...(ticket !== undefined && { ticket }),
    context,
    ...(approval && { approval }),
    now,
  })
  if (decision === 'unavailable') throw problem('impersonation.policy_unavailable')
  if (!decision.allow) throw denied(decision)
  return decision
}

/** A step-up is told as the authorization request that it takes (RFC 9470 §4). */
const denied = ({ reason, acr_values = [], max_age }: ImpersonationDecision): AppError => {
  const isStepUp = reason === stepUpRequired
  return problem('impersonation.denied', {
    detail: isStepUp ? 'Whoever acts has to sign in again, as acr_values and max_age say.' : reason,
    data: {
      reason: reason ?? null,
      ...(isStepUp && { acr_values: acr_values.join(' '), ...(max_age !== undefined && { max_age }) }),
    },
  })
}
