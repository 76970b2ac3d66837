import { toSeconds } from '../../../../platform/clock.ts'
import { type ImpersonationDecision, stepUpRequired } from '../../../../policies/impersonation.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import {
  type ImpersonationPolicy,
  keptAnswer,
  type RevisedDecision,
} from '../../../tokens/subject-tokens/impersonation-policy.ts'
import type { Actor } from './actor.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'
import type { CheckedExchange } from './plan.ts'

type Decided = 'scopes' | 'maxTtl' | 'access' | 'policy'
type Undecided = Omit<CheckedExchange, 'maxTtl' | 'access' | 'policy'>

/**
 * What policy, approval and an actor token that only reads leave of the scopes and of the lifetime. Throws
 * `access_denied`, or 503 when the policy is broken.
 */
export const askPolicy = (policy: ImpersonationPolicy, exchange: Undecided): Pick<CheckedExchange, Decided> => {
  const decision = decisionOn(policy, exchange)
  const { scopes: asked, maxTtl, readOnly = false } = decision
  const { approval } = exchange.facts
  const limits = [asked, approval?.scopes].filter((names) => names !== undefined)
  return {
    scopes: exchange.scopes.filter((name) => limits.every((names) => names.includes(name))),
    maxTtl: Math.min(maxTtl ?? Number.POSITIVE_INFINITY, approval?.maxTtl ?? Number.POSITIVE_INFINITY),
    access: readOnly || approval?.readOnly ? 'read' : exchange.actor?.access,
    policy: keptAnswer(decision),
  }
}

const decisionOn = (policy: ImpersonationPolicy, exchange: Undecided): RevisedDecision => {
  const { subject } = exchange
  // The policy is about subject tokens; an access token stands for who holds it.
  if (!policy.enabled || subject.kind !== 'subject-token') return { allow: true }
  const decision = policy.decide(questionOf(exchange, subject.creatorId))
  if (decision === 'unavailable') {
    throw new OAuthError('temporarily_unavailable', 'The impersonation policy could not be evaluated.')
  }
  if (!decision.allow) throw refusal(decision)
  if (decision.require?.includes('approval') && exchange.facts.approval === null) {
    throw new OAuthError('access_denied', 'The person has to agree to this first.', { reason: 'approval_required' })
  }
  return decision
}

/** A step-up is told as the authorization request that it takes (RFC 9470 §4). */
const refusal = ({ reason, acr_values = [], max_age }: ImpersonationDecision): OAuthError => {
  if (reason !== stepUpRequired) {
    const why = reason === undefined ? '' : `: ${reason}`
    return new OAuthError('access_denied', `The impersonation policy refused this${why}.`, { reason: 'policy' })
  }
  return new OAuthError('access_denied', 'Whoever acts has to sign in again, as acr_values and max_age say.', {
    reason,
    members: { ...(acr_values.length > 0 && { acr_values: acr_values.join(' ') }), max_age },
  })
}

const questionOf = ({ request, facts, subject, actor, resource, scopes }: Undecided, creatorId: string) => ({
  stage: 'exchange' as const,
  subject: {
    id: subject.userId,
    isSuspended: facts.subjectSuspended,
    roles: facts.subjectRoles ?? [],
    organizations: facts.subjectOrganizations ?? [],
    customData: facts.subjectCustomData ?? {},
    ...(facts.subjectManagementScopes?.length && { managementScopes: facts.subjectManagementScopes }),
  },
  ...(actor && { actor: actorOf(actor, facts) }),
  client: { id: request.client.id, type: request.client.type, name: request.client.name },
  creator: { clientId: creatorId },
  ...(resource && { resource: resource.indicator }),
  ...(request.organizationId !== undefined && { organization: { id: request.organizationId } }),
  scopes: [...scopes],
  ...(facts.reason !== null && { reason: facts.reason }),
  ...(facts.ticket !== null && { ticket: facts.ticket }),
  context: facts.context,
  ...(facts.approval && { approval: facts.approval }),
  now: toSeconds(request.now),
})

const actorOf = ({ id, via, chain, clientId, signIn }: Actor, { actorRoles, actorOrganizations }: ExchangeFacts) => ({
  id,
  roles: actorRoles ?? [],
  organizations: actorOrganizations ?? [],
  via,
  chain,
  ...(clientId !== undefined && { clientId }),
  ...(signIn && { acr: signIn.acr, auth_time: signIn.authTime }),
})
