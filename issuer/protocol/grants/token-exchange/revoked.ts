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

export const revocableJwt = (claims: VerifiedClaims): RevocableToken => ({
  jti: claims.jti,
  sid: claims.sid,
  people: representedUsers(claims),
  clientId: claims.client_id,
  iat: claims.iat,
})

export const revocableOpaqueToken = (
  { sessionId, clientId, issuedAt, act }: OpaqueTokenFacts,
  userId: string,
): RevocableToken => ({
  sid: sessionId,
  people: [userId, ...actorsOf(act ?? undefined)],
  clientId,
  iat: issuedAt,
})

/** What is known of JWTs before anything is read, to look revocations up by. Of stored tokens the database knows it. */
export const revocableValues = (subject: PresentedSubject, actor: PresentedActor | undefined): string[] =>
  [subject, actor].flatMap((presented) => {
    if (presented?.kind !== 'jwt') return []
    const { jti, sid, people, clientId } = revocableJwt(presented.claims)
    return [jti, sid, clientId, ...people].filter((value) => typeof value === 'string')
  })

export const isRevoked = ({ revocations }: ExchangeFacts, token: RevocableToken): boolean =>
  revocations !== null && isRevokedBy(revocations, token)
