import { toSeconds } from '../../../../platform/clock.ts'
import { newId, randomToken } from '../../../../platform/ids.ts'
import { type AccessTokenClaims, newTokenId, personalAccessTokenAmr } from '../../../tokens/access-token.ts'
import type { PolicyAnswer } from '../../../tokens/impersonations/history.ts'
import { type ImpersonationSession, sessionStarted } from '../../../tokens/impersonations/impersonation.ts'
import { peopleRevokedUntil } from '../../../tokens/revocations/is-revoked.ts'
import { issueTime } from '../../../tokens/revocations/issue-time.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Audience } from '../../requests/resource.ts'
import type { PreparedToken } from '../grant.ts'
import type { Actor } from './actor.ts'
import { type ExchangeSoFar, issuedEntry } from './audit.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'
import type { Impersonation, Issue, PersonalIssue } from './exchange-store.ts'
import { refused } from './refusal.ts'
import { tokenTypes } from './request.ts'
import type { Subject } from './subject.ts'

/** Everything that was checked and decided about one exchange. */
export interface CheckedExchange extends ExchangeSoFar {
  facts: ExchangeFacts
  subject: Subject
  actor: Actor | undefined
  /** What the token is for; an opaque one for nothing but userinfo. */
  resource: Audience | undefined
  /** Granted. */
  scopes: readonly string[]
  /** In seconds; infinite unless the policy says otherwise. */
  maxTtl: number
  /** `read`: the token only reads. */
  access: 'read' | undefined
  /** What the impersonation policy said. */
  policy: PolicyAnswer
  /** Whether impersonations end with what their actor had signed in to. */
  endsWithActor: boolean
}

/** The token to issue, and what is written when it is. */
export interface PreparedExchange extends PreparedToken {
  issue: Issue
  /** Present when a subject token is used up. */
  impersonation: Impersonation | undefined
  /** Present when it was the subject token. */
  personalAccessToken: (PersonalIssue & { useNoted: boolean }) | undefined
  attempt: ExchangeSoFar
  /** What the token says, also when it is an opaque one that says it only here. */
  said: Omit<AccessTokenClaims, 'aud'> & { aud: string | undefined }
}

/** Of an opaque token, in seconds; with a resource, the resource says. */
const opaqueTokenTtl = 3600

export const planExchange = (checked: CheckedExchange): PreparedExchange => {
  const { request, facts, subject, actor, resource, scopes, maxTtl, access } = checked
  const iat = toSeconds(issueTime(request.now, peopleRevokedUntil(facts.revocations ?? [])))
  const ttl = Math.min(resource?.accessTokenTtl ?? opaqueTokenTtl, maxTtl)
  const exp = Math.min(iat + ttl, subject.latestExpiry, actor?.latestExpiry ?? Number.POSITIVE_INFINITY)
  // The verifier allows our clocks a few seconds.
  if (exp <= iat) throw refused(exp === actor?.latestExpiry ? 'actor_token_invalid' : 'subject_token_expired')
  const expiresAt = new Date(exp * 1000)
  const jti = newTokenId()
  const scope = scopes.join(' ')
  const session = subject.kind === 'subject-token' ? newSession(checked, subject.creatorId, jti, expiresAt) : undefined
  const sid = subject.kind === 'access-token' ? subject.sid : session?.id
  const act = actor?.act
  const clientId = request.client.id
  const { organizationId } = request
  const personal = subject.kind === 'personal-access-token' ? subject : undefined
  const amr = personal && [personalAccessTokenAmr]
  const aud = resource?.indicator
  const said = { jti, sub: subject.userId, aud, clientId, scope, iat, exp, organizationId, sid, act, amr, access }
  const token: PreparedToken['token'] = aud === undefined ? { opaque: randomToken() } : { claims: { ...said, aud } }

  return {
    token,
    scope,
    expiresIn: exp - iat,
    issuedTokenType: tokenTypes.accessToken,
    impersonation:
      subject.kind === 'subject-token' && session
        ? { digest: subject.digest, session, started: sessionStarted(session, request.origin) }
        : undefined,
    personalAccessToken: personal && {
      digest: personal.digest,
      tokenId: jti,
      expiresAt,
      useNoted: personal.useNoted,
    },
    attempt: checked,
    said,
    issue: {
      userId: subject.userId,
      clientId,
      actorId: actor?.id,
      opaque:
        'opaque' in token
          ? {
              digest: tokenDigest('opaque-token', token.opaque),
              scope,
              sessionId: sid,
              act,
              access,
              expiresAt,
              jkt: request.jkt,
            }
          : undefined,
      audit: issuedEntry(checked, { scope, tokenId: jti, sessionId: sid }),
    },
  }
}

const newSession = (
  checked: CheckedExchange,
  creatorId: string,
  tokenId: string,
  expiresAt: Date,
): ImpersonationSession => ({
  id: newId(),
  subjectId: checked.subject.userId,
  actorId: checked.actor?.id,
  actorVia: checked.actor?.via,
  actorSid: checked.actor?.sid,
  endsWithActor: checked.endsWithActor || checked.actor?.via === 'subject_token',
  clientId: checked.request.client.id,
  creatorId,
  resource: checked.resource?.indicator,
  scopes: checked.scopes,
  context: checked.facts.context,
  reason: checked.facts.reason ?? undefined,
  ticket: checked.facts.ticket ?? undefined,
  access: checked.access,
  policy: checked.policy,
  approvalId: checked.facts.approval?.id,
  tokenId,
  startedAt: checked.request.now,
  expiresAt,
})
