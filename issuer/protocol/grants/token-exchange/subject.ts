import { JwtError } from '../../../../platform/jwt/jwt-error.ts'
import type { VerifiedClaims } from '../../../../platform/jwt/verify.ts'
import { type AccessTokenVerifier, cameFromPersonalAccessToken } from '../../../tokens/access-token.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Client } from '../../clients/client.ts'
import type { ExchangeFacts, OpaqueTokenFacts } from './exchange-facts-store.ts'
import { refused } from './refusal.ts'
import { type ExchangeRequest, tokenTypes } from './request.ts'
import { isSubjectRevoked } from './revoked.ts'

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
    bound: claims.sid !== undefined || claims.act !== undefined || cameFromPersonalAccessToken(claims),
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

/** The id of the user that the token stands for. Throws the refusal that applies first. */
export const checkSubject = (subject: PresentedSubject, facts: ExchangeFacts, client: Client): string => {
  if (subject.kind === 'subject-token') checkSubjectToken(facts, client)
  else if (subject.kind === 'personal-access-token') checkPersonalAccessToken(facts)
  else checkAccessToken(subject, facts)
  if (facts.subjectId === null || facts.subjectSuspended) throw refused('subject_suspended')
  // After suspension, which revokes too and is the better answer.
  if (isSubjectRevoked(subject, facts)) throw refused('subject_token_expired')
  return facts.subjectId
}

const checkSubjectToken = (facts: ExchangeFacts, client: Client) => {
  if (facts.creatorId === null) throw refused('subject_token_unknown')
  if (facts.consumed) throw refused('subject_token_consumed')
  if (facts.expired) throw refused('subject_token_expired')
  if (facts.boundClientId !== null && facts.boundClientId !== client.id) throw refused('subject_token_bound')
}

const checkPersonalAccessToken = ({ personalAccessToken }: ExchangeFacts) => {
  if (!personalAccessToken) throw refused('subject_token_unknown')
  if (personalAccessToken.expired) throw refused('subject_token_expired')
}

type AccessToken = Extract<PresentedSubject, { kind: 'opaque-token' | 'jwt' }>

const checkAccessToken = (subject: AccessToken, facts: ExchangeFacts) => {
  if (subject.kind === 'opaque-token') {
    if (!facts.opaqueSubject) throw refused('subject_token_unknown')
    if (facts.opaqueSubject.expired) throw refused('subject_token_expired')
  }
  // An impersonation is bound to its resource, its scopes and its end (interface §8); exchanging it again would escape
  // all three. What came from a personal access token would escape that token's scopes.
  if (subject.kind === 'jwt' ? subject.bound : isBound(facts.opaqueSubject!)) throw refused('subject_token_bound')
  if (facts.subjectClientIsThirdParty !== false) throw refused('subject_token_type')
}

const isBound = ({ sessionId, act, fromPersonalAccessToken }: OpaqueTokenFacts) =>
  sessionId !== null || act !== null || fromPersonalAccessToken

/**
 * When the presented token ends, in seconds; what comes from an access token or a personal access token ends with it.
 */
export const latestExpiry = (subject: PresentedSubject, facts: ExchangeFacts): number => {
  if (subject.kind === 'subject-token') return Number.POSITIVE_INFINITY
  if (subject.kind === 'personal-access-token') return facts.personalAccessToken!.expiresAt ?? Number.POSITIVE_INFINITY
  return subject.kind === 'jwt' ? subject.exp : facts.opaqueSubject!.expiresAt
}
