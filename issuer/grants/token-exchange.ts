import type { Database, Query } from '../../platform/database.ts'
import type { OAuthError } from '../../platform/problem.ts'
import type { ImpersonationPolicy } from '../impersonation/policy.ts'
import type { AccessTokenVerifier } from '../tokens/access-token.ts'
import { checkActor, presentActor } from './exchange/actor.ts'
import { askPolicy } from './exchange/ask-policy.ts'
import {
  consumeSubjectToken,
  findExchangeFacts,
  recordExchange,
  subjectTokenStatus,
} from './exchange/exchange-store.ts'
import { grantableScopes, requireBoundResource } from './exchange/grantable.ts'
import { type PreparedExchange, planExchange } from './exchange/plan.ts'
import { refused } from './exchange/refusal.ts'
import { type ExchangeRequest, exchangeGrantType, readExchangeRequest } from './exchange/request.ts'
import { checkSubject, presentSubject } from './exchange/subject.ts'
import { type Grant, grant } from './grant.ts'

export interface ExchangeDependencies {
  database: Pick<Database, 'query'>
  verifier: AccessTokenVerifier
  policy: ImpersonationPolicy
  /** The publisher of the outbox. */
  events: { wake(): void }
}

/**
 * RFC 8693: a subject token of the Management API (single use, opens an impersonation session) or an access token of this issuer is
 * exchanged for an access token of its subject, bound to one resource; with an actor token it carries `act`.
 */
export const tokenExchangeGrant = ({ database, verifier, policy, events }: ExchangeDependencies): Grant =>
  grant<ExchangeRequest, PreparedExchange>({
    type: exchangeGrantType,
    // Absent means allowed, but never for third-party applications.
    allows: ({ isThirdParty, allowTokenExchange }) => !isThirdParty && allowTokenExchange !== false,
    read: readExchangeRequest,

    // The order of the checks decides which of several faults is told: subject token, subject, resource, scopes, actor, policy.
    async prepare(input, request) {
      const subject = await presentSubject(input, verifier)
      const presentedActor = await presentActor(input, verifier)
      const [target] = await Promise.allSettled([request.target({ required: false })])
      const facts = await findExchangeFacts(database.query, {
        subject,
        actor: presentedActor,
        resourceId: target.status === 'fulfilled' ? target.value?.id : undefined,
        scopes: request.scopes,
        forPolicy: policy.enabled,
      })
      const subjectId = checkSubject(subject, facts, request.client)
      if (target.status === 'rejected') throw target.reason
      const resource = target.value
      requireBoundResource(facts, resource)
      const scopes = grantableScopes(request.scopes, facts, resource)
      const actor = checkActor(presentedActor, facts)
      const checked = { input, request, facts, subject, subjectId, actor, resource, scopes }
      return planExchange({ ...checked, ...askPolicy(policy, checked) })
    },

    async redeem({ query }, { issue, impersonation }) {
      if (impersonation) {
        if (!(await consumeSubjectToken(query, impersonation, issue)))
          throw await lateRefusal(query, impersonation.digest)
      } else if (!(await recordExchange(query, issue))) {
        throw refused('subject_suspended')
      }
    },

    issued: () => events.wake(),
  })

/** The subject token was good when it was read and is not any more: another request was faster, or time has passed. */
const lateRefusal = async (query: Query, digest: Buffer): Promise<OAuthError> => {
  const status = await subjectTokenStatus(query, digest)
  if (!status) return refused('subject_token_unknown')
  if (status.consumed) return refused('subject_token_consumed')
  return refused(status.expired ? 'subject_token_expired' : 'subject_suspended')
}
