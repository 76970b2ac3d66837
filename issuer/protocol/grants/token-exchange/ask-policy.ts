import { toSeconds } from '../../../../platform/clock.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { ImpersonationPolicy } from '../../../tokens/subject-tokens/impersonation-policy.ts'
import type { Actor } from './actor.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'
import type { CheckedExchange } from './plan.ts'

/**
 * What the policy leaves of the scopes and of the lifetime. Throws `access_denied`, or 503 when the policy is broken.
 */
export const askPolicy = (
  policy: ImpersonationPolicy,
  exchange: Omit<CheckedExchange, 'maxTtl'>,
): Pick<CheckedExchange, 'scopes' | 'maxTtl'> => {
  const { scopes, subject } = exchange
  // The policy is about subject tokens; an access token stands for who holds it.
  if (!policy.enabled || subject.kind !== 'subject-token') return { scopes, maxTtl: Number.POSITIVE_INFINITY }
  const decision = policy.decide(questionOf(exchange))
  if (decision === 'unavailable') {
    throw new OAuthError('temporarily_unavailable', 'The impersonation policy could not be evaluated.')
  }
  if (!decision.allow) {
    const why = decision.reason === undefined ? '' : `: ${decision.reason}`
    throw new OAuthError('access_denied', `The impersonation policy refused this${why}.`, { reason: 'policy' })
  }
  const { scopes: left = scopes, maxTtl = Number.POSITIVE_INFINITY } = decision
  return { scopes: scopes.filter((name) => left.includes(name)), maxTtl }
}

const questionOf = ({ request, facts, subjectId, actor, resource, scopes }: Omit<CheckedExchange, 'maxTtl'>) => ({
  stage: 'exchange' as const,
  subject: {
    id: subjectId,
    isSuspended: facts.subjectSuspended,
    roles: facts.subjectRoles ?? [],
    organizations: facts.subjectOrganizations ?? [],
    customData: facts.subjectCustomData ?? {},
  },
  ...(actor && { actor: actorOf(actor, facts) }),
  client: { id: request.client.id, type: request.client.type, name: request.client.name },
  creator: { clientId: facts.creatorId! },
  ...(resource && { resource: resource.indicator }),
  ...(request.organizationId !== undefined && { organization: { id: request.organizationId } }),
  scopes: [...scopes],
  ...(facts.reason !== null && { reason: facts.reason }),
  ...(facts.ticket !== null && { ticket: facts.ticket }),
  context: facts.context,
  now: toSeconds(request.now),
})

const actorOf = ({ id, via, chain, clientId }: Actor, { actorRoles, actorOrganizations }: ExchangeFacts) => ({
  id,
  roles: actorRoles ?? [],
  organizations: actorOrganizations ?? [],
  via,
  chain,
  ...(clientId !== undefined && { clientId }),
})
