import type { Database, Query } from '../../../../platform/database/database.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { CustomClaims, ScriptClaims } from '../../../claims/claims.ts'
import type { LastUse } from '../../../directory/personal-access-tokens/last-use.ts'
import { isGood } from '../../../directory/personal-access-tokens/personal-access-token-store.ts'
import type { AccessTokenVerifier } from '../../../tokens/access-token.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import type { ImpersonationPolicy } from '../../../tokens/subject-tokens/impersonation-policy.ts'
import { isPublic } from '../../clients/client.ts'
import { type Grant, grant, type RequestedTarget } from '../grant.ts'
import { enterOrganization } from '../organization.ts'
import type { Redeemer } from '../redeeming-store.ts'
import { checkActor, isActorJwt, type PresentedActor, presentActor, storedActor } from './actor.ts'
import { askPolicy } from './ask-policy.ts'
import { type ExchangeSoFar, forbiddenEntry, refusedEntry } from './audit.ts'
import { type ExchangeFacts, findExchangeFacts } from './exchange-facts-store.ts'
import { type Impersonation, recordExchange, redeemSubjectToken, subjectTokenStatus } from './exchange-store.ts'
import { grantableScopes, requireBoundResource } from './grantable.ts'
import { type PreparedExchange, planExchange } from './plan.ts'
import { refused } from './refusal.ts'
import { type ExchangeRequest, readExchangeRequest } from './request.ts'
import { checkSubject, type PresentedSubject, presentSubject, storedSubject } from './subject.ts'

export interface ExchangeDependencies {
  database: Pick<Database, 'query'>
  verifier: AccessTokenVerifier
  policy: ImpersonationPolicy
  claims: CustomClaims
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of refused exchanges; the row of one that succeeds is written with it. */
  audit: TokenAudit
  lastUse: LastUse
  /** Whether impersonations end with what their actor had signed in to. */
  endsWithActor: () => boolean
}

/** What was presented, and what is known of it. */
interface Ahead {
  presentedSubject: PresentedSubject
  presentedActor: PresentedActor | undefined
  facts: ExchangeFacts
}

/**
 * RFC 8693: a subject token of the Management API (single use, opens an impersonation session), a personal access token
 * or an access token of this issuer is exchanged for an access token of its subject, bound to one resource; with an
 * actor token it carries `act`.
 */
export const tokenExchangeGrant = (dependencies: ExchangeDependencies): Grant => {
  const { database, verifier, policy, claims, events, audit, lastUse, endsWithActor } = dependencies

  const factsOf = async (
    presentedSubject: PresentedSubject,
    presentedActor: PresentedActor | undefined,
    asked: RequestedTarget,
  ) => {
    const { resource, useDefaultResource, scopes } = asked
    const presented = { subject: presentedSubject, actor: presentedActor }
    const question = { ...presented, resource, useDefaultResource, scopes, forPolicy: policy.enabled }
    return { presentedSubject, presentedActor, facts: await findExchangeFacts(database.query, question) }
  }

  const present = async (input: ExchangeRequest, asked: RequestedTarget): Promise<Ahead> =>
    factsOf(await presentSubject(input, verifier), await presentActor(input, verifier), asked)

  // The order of the checks decides which of several faults is told: subject token, subject, organization, resource,
  // scopes, actor, policy, script.
  const prepare = async (attempt: ExchangeSoFar, ahead: Promise<Ahead> | undefined): Promise<PreparedExchange> => {
    const { input, request } = attempt
    const { presentedSubject, presentedActor, facts } = await (ahead ?? present(input, request))
    attempt.facts = facts
    const [target] = await Promise.allSettled([request.target({ required: false })])
    const subject = checkSubject(presentedSubject, facts, request)
    const organization = await enterOrganization(database.query, request, { kind: 'user', id: subject.userId }, target)
    if (target.status === 'rejected') throw target.reason
    const resource = organization?.audience ?? target.value
    requireBoundResource(facts, resource)
    const scopes = grantableScopes(request.scopes, facts, target.value, organization)
    const actor = checkActor(presentedActor, facts, request.jkt)
    attempt.actor = actor
    const checked = { input, request, facts, subject, actor, resource, scopes, endsWithActor: endsWithActor() }
    const planned = planExchange({ ...checked, ...askPolicy(policy, checked) })
    const { context: subjectTokenContext } = facts
    const asked = claims.of(request.claimsScripts, () => ({
      kind: 'access-token',
      ...planned.said,
      subjectTokenContext,
    }))
    return asked ? withClaims(planned, await asked) : planned
  }

  const redeem = async (database: Redeemer, { issue, impersonation, personalAccessToken }: PreparedExchange) => {
    if (impersonation) {
      if (!(await redeemSubjectToken(database, impersonation, issue)))
        throw await lateRefusal(database.query, impersonation)
    } else if (!(await recordExchange(database, issue, personalAccessToken))) {
      const isGone = personalAccessToken && !(await isGood(database.query, personalAccessToken.digest))
      throw refused(isGone ? 'subject_token_unknown' : 'subject_suspended')
    }
    return {}
  }

  /** Who tried and was refused belongs into the trail as well. */
  const audited = async <Result>(attempt: ExchangeSoFar, step: Promise<Result>): Promise<Result> => {
    try {
      return await step
    } catch (error) {
      const entry = error instanceof OAuthError ? refusedEntry(attempt, error) : undefined
      if (entry) audit.record(entry)
      throw error
    }
  }

  return grant<ExchangeRequest, PreparedExchange, Ahead>({
    type: grantTypes.tokenExchange,
    // Absent means allowed, but never for third-party applications.
    allows: ({ isThirdParty, allowTokenExchange }) => !isThirdParty && allowTokenExchange !== false,
    forbidden(client, origin) {
      if (!isPublic(client)) audit.record(forbiddenEntry(client, origin))
    },
    read: readExchangeRequest,
    readAhead(input, asked) {
      const subject = isActorJwt(input) ? undefined : storedSubject(input)
      return subject && factsOf(subject, storedActor(input), asked)
    },
    prepare(input, request, ahead) {
      const attempt: ExchangeSoFar = { input, request }
      return audited(attempt, prepare(attempt, ahead))
    },
    redeem: (database, prepared) => audited(prepared.attempt, redeem(database, prepared)),
    issued({ personalAccessToken }) {
      events.wake()
      if (personalAccessToken && !personalAccessToken.useNoted) lastUse.record(personalAccessToken.digest)
    },
  })
}

/** An opaque token has none: the script was asked whether it may be issued. */
const withClaims = ({ token, ...planned }: PreparedExchange, custom: ScriptClaims): PreparedExchange => ({
  ...planned,
  token: 'claims' in token ? { claims: { ...token.claims, custom } } : token,
})

/** The subject token was good when it was read and is not any more: another request was faster, or time has passed. */
const lateRefusal = async (query: Query, { digest, session }: Impersonation): Promise<OAuthError> => {
  const status = await subjectTokenStatus(query, digest, session.actorSid)
  if (!status) return refused('subject_token_unknown')
  if (status.consumed) return refused('subject_token_consumed')
  if (status.expired) return refused('subject_token_expired')
  return refused(status.actorSignedOut ? 'actor_token_invalid' : 'subject_suspended')
}
