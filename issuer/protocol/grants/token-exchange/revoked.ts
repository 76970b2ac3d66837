import type { VerifiedClaims } from '../../../../platform/jwt/verify.ts'
import { actorsOf, representedUsers } from '../../../tokens/represented-users.ts'
import { isRevokedBy, type RevocableToken } from '../../../tokens/revocations/is-revoked.ts'
import type { PresentedActor } from './actor.ts'
import type { ExchangeFacts, OpaqueTokenFacts } from './exchange-facts-store.ts'
import type { PresentedSubject } from './subject.ts'

/**
 * Whether the tokens that were presented were revoked: by themselves, with their session or client, or with anybody
 * they speak for.
 */

const ofJwt = (claims: VerifiedClaims): RevocableToken => ({
  jti: claims.jti,
  sid: claims.sid,
  people: representedUsers(claims),
  clientId: claims.client_id,
  iat: claims.iat,
})

const ofOpaqueToken = ({ sessionId, clientId, issuedAt, act }: OpaqueTokenFacts, userId: string): RevocableToken => ({
  sid: sessionId,
  people: [userId, ...actorsOf(act ?? undefined)],
  clientId,
  iat: issuedAt,
})

/** What is known of JWTs before anything is read, to look revocations up by. Of stored tokens the database knows it. */
export const revocableValues = (subject: PresentedSubject, actor: PresentedActor | undefined): string[] =>
  [subject, actor].flatMap((presented) => {
    if (presented?.kind !== 'jwt') return []
    const { jti, sid, people, clientId } = ofJwt(presented.claims)
    return [jti, sid, clientId, ...people].filter((value) => typeof value === 'string')
  })

export const isSubjectRevoked = (
  subject: PresentedSubject,
  { revocations, opaqueSubject, subjectId }: ExchangeFacts,
) => {
  // Subject tokens and personal access tokens are no access tokens: they are used up or deleted, not revoked.
  if (revocations === null || subject.kind === 'subject-token' || subject.kind === 'personal-access-token') return false
  const token = subject.kind === 'jwt' ? ofJwt(subject.claims) : ofOpaqueToken(opaqueSubject!, subjectId!)
  return isRevokedBy(revocations, token)
}

export const isActorRevoked = (actor: PresentedActor, { revocations, opaqueActor, actorId }: ExchangeFacts) => {
  if (revocations === null) return false
  return isRevokedBy(revocations, actor.kind === 'jwt' ? ofJwt(actor.claims) : ofOpaqueToken(opaqueActor!, actorId!))
}
