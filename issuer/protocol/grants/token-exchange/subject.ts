import { JwtError } from '../../../../platform/jwt/jwt-error.ts'
import { isImpersonationSid, isSignInSid } from '../../../../platform/jwt/sid.ts'
import type { VerifiedClaims } from '../../../../platform/jwt/verify.ts'
import { type AccessTokenVerifier, cameFromPersonalAccessToken } from '../../../tokens/access-token.ts'
import { isConfirmedBy } from '../../../tokens/dpop/confirmation.ts'
import type { RevocableToken } from '../../../tokens/revocations/is-revoked.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import { type Client, isPublic } from '../../clients/client.ts'
import type { TokenRequest } from '../grant.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'
import { refused } from './refusal.ts'
import { type ExchangeRequest, tokenTypes } from './request.ts'
import { isRevoked, revocableJwt, revocableOpaqueToken } from './revoked.ts'

/** What was presented as subject token. */
export type PresentedSubject =
  | { kind: 'subject-token'; digest: Buffer }
  | { kind: 'personal-access-token'; digest: Buffer }
  | { kind: 'opaque-token'; digest: Buffer }
  | { kind: 'jwt'; userId: string; clientId: string; bound: boolean; exp: number; claims: VerifiedClaims }

const subjectTokenPrefix = 'sub_'

/** Of a token that is stored here, so that nothing has to be verified; undefined for a JWT. */
export const storedSubject = ({
  subjectToken,
  subjectTokenType,
}: ExchangeRequest): Exclude<PresentedSubject, { kind: 'jwt' }> | undefined => {
  if (subjectTokenType === tokenTypes.personalAccessToken) {
    return { kind: 'personal-access-token', digest: tokenDigest('personal-access-token', subjectToken) }
  }
  if (subjectTokenType === tokenTypes.impersonation || subjectToken.startsWith(subjectTokenPrefix)) {
    return { kind: 'subject-token', digest: tokenDigest('subject-token', subjectToken) }
  }
  if (subjectToken.includes('.')) return undefined
  return { kind: 'opaque-token', digest: tokenDigest('opaque-token', subjectToken) }
}

export const presentSubject = async (
  input: ExchangeRequest,
  verifier: AccessTokenVerifier,
): Promise<PresentedSubject> => storedSubject(input) ?? (await presentJwt(input.subjectToken, verifier))

const presentJwt = async (subjectToken: string, verifier: AccessTokenVerifier): Promise<PresentedSubject> => {
  const claims = await verifiedSubject(subjectToken, verifier)
  // RFC 9068 §2.2: a token whose subject is its client is the client's own, and nobody's to act as.
  if (claims.client_id === undefined || claims.client_id === claims.sub) throw refused('subject_token_type')
  return {
    kind: 'jwt',
    userId: claims.sub,
    clientId: claims.client_id,
    bound: isImpersonationSid(claims.sid) || claims.act !== undefined || cameFromPersonalAccessToken(claims),
    exp: claims.exp,
    claims,
  }
}

const verifiedSubject = (token: string, verifier: AccessTokenVerifier): Promise<VerifiedClaims> =>
  verifier.verify(token, { audience: undefined }).catch((error) => {
    if (!(error instanceof JwtError)) throw error
    if (error.reason === 'expired') throw refused('subject_token_expired')
    throw refused(error.reason === 'type' ? 'subject_token_type' : 'subject_token_unknown')
  })

/** A subject whose token may be exchanged, and what the token says of the one to issue. */
export type Subject = CheckedToken & { userId: string }

type CheckedToken = {
  /** In seconds: what comes from an access token or a personal access token ends with it. */
  latestExpiry: number
} & (
  | { kind: 'subject-token'; digest: Buffer; creatorId: string }
  | { kind: 'personal-access-token'; digest: Buffer; useNoted: boolean }
  /** `sid` goes on in the new token, which so ends with the sign-in that the old one came of. */
  | { kind: 'access-token'; sid: string | undefined; revocable(userId: string): RevocableToken }
)

/** Throws the refusal that applies first. */
export const checkSubject = (
  presented: PresentedSubject,
  facts: ExchangeFacts,
  { client, jkt }: Pick<TokenRequest, 'client' | 'jkt'>,
): Subject => {
  const token = checkToken(presented, facts, client)
  // Whoever has a copy of it without the key makes nothing else of it.
  if (!isConfirmedBy(confirmationOf(presented, facts), jkt)) throw refused('subject_token_bound')
  const { subjectId: userId } = facts
  if (userId === null || facts.subjectSuspended) throw refused('subject_suspended')
  // After suspension, which revokes too and is the better answer. Subject tokens and personal access tokens are no
  // access tokens: they are used up or deleted, not revoked.
  if (token.kind === 'access-token' && isRevoked(facts, token.revocable(userId))) throw refused('subject_token_expired')
  return { ...token, userId }
}

/** The `cnf` of an access token; those of other kinds are bound to no key. */
const confirmationOf = (presented: PresentedSubject, { opaqueSubject }: ExchangeFacts): unknown =>
  presented.kind === 'jwt' ? presented.claims['cnf'] : opaqueSubject?.cnf

const checkToken = (presented: PresentedSubject, facts: ExchangeFacts, client: Client): CheckedToken => {
  switch (presented.kind) {
    case 'subject-token':
      return checkSubjectToken(presented.digest, facts, client)
    case 'personal-access-token':
      return checkPersonalAccessToken(presented.digest, facts)
    case 'opaque-token':
      return checkOpaqueToken(facts, client)
    case 'jwt':
      requireExchangeable({ isBound: presented.bound, sid: presented.claims.sid }, facts, client)
      return {
        kind: 'access-token',
        sid: presented.claims.sid,
        latestExpiry: presented.exp,
        revocable: () => revocableJwt(presented.claims),
      }
  }
}

const checkSubjectToken = (digest: Buffer, facts: ExchangeFacts, client: Client): CheckedToken => {
  const { creatorId, boundClientId } = facts
  if (creatorId === null) throw refused('subject_token_unknown')
  if (facts.consumed) throw refused('subject_token_consumed')
  if (facts.expired) throw refused('subject_token_expired')
  if (boundClientId !== null && boundClientId !== client.id) throw refused('subject_token_bound')
  return { kind: 'subject-token', digest, creatorId, latestExpiry: Number.POSITIVE_INFINITY }
}

const checkPersonalAccessToken = (digest: Buffer, { personalAccessToken }: ExchangeFacts): CheckedToken => {
  if (!personalAccessToken) throw refused('subject_token_unknown')
  if (personalAccessToken.expired) throw refused('subject_token_expired')
  const { useNoted, expiresAt } = personalAccessToken
  return { kind: 'personal-access-token', digest, useNoted, latestExpiry: expiresAt ?? Number.POSITIVE_INFINITY }
}

const checkOpaqueToken = (facts: ExchangeFacts, client: Client): CheckedToken => {
  const { opaqueSubject: token } = facts
  if (!token) throw refused('subject_token_unknown')
  if (token.expired) throw refused('subject_token_expired')
  const isBound = isImpersonationSid(token.sessionId) || token.act !== null || token.fromPersonalAccessToken
  requireExchangeable({ isBound, sid: token.sessionId }, facts, client)
  return {
    kind: 'access-token',
    sid: token.sessionId ?? undefined,
    latestExpiry: token.expiresAt,
    revocable: (userId) => revocableOpaqueToken(token, userId),
  }
}

// An impersonation is bound to its resource, its scopes and its end (interface §8); exchanging it again would escape
// all three. What came from a personal access token would escape that token's scopes. What somebody got by signing in
// is shown to APIs, and each of them can name a public client: only who proves to be a client makes something else of
// it (RFC 9700 §2.3). A public client has the refresh token.
const requireExchangeable = (
  { isBound, sid }: { isBound: boolean; sid: string | null | undefined },
  { subjectClientIsThirdParty }: ExchangeFacts,
  client: Client,
) => {
  if (isBound) throw refused('subject_token_bound')
  if (subjectClientIsThirdParty !== false) throw refused('subject_token_type')
  if (sid && isSignInSid(sid) && isPublic(client)) throw refused('subject_token_type')
}
