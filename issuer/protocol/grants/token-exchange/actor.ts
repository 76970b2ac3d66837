import { JwtError } from '../../../../platform/jwt/jwt-error.ts'
import { maxActDepth, type VerifiedClaims } from '../../../../platform/jwt/verify.ts'
import { type AccessTokenVerifier, type Act, cameFromPersonalAccessToken } from '../../../tokens/access-token.ts'
import { isConfirmedBy } from '../../../tokens/dpop/confirmation.ts'
import { actorViaOf } from '../../../tokens/impersonations/actor-via.ts'
import type { ActorVia } from '../../../tokens/impersonations/impersonation.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { ExchangeFacts, SignInFacts } from './exchange-facts-store.ts'
import { refused } from './refusal.ts'
import type { ExchangeRequest } from './request.ts'
import { isRevoked, revocableJwt, revocableOpaqueToken } from './revoked.ts'

/** What was presented as actor token. */
export type PresentedActor =
  | { kind: 'opaque-token'; digest: Buffer }
  | {
      kind: 'jwt'
      userId: string
      sessionId: string | undefined
      scope: string
      act: Act | undefined
      fromPersonalAccessToken: boolean
      clientId: string | undefined
      cnf: unknown
      access: 'read' | null
      /** In seconds. */
      expiresAt: number
      signIn: SignInFacts | undefined
      claims: VerifiedClaims
    }

/** Who acts. */
export interface Actor {
  id: string
  via: ActorVia
  /** The claim of the token to issue: the actor, and behind it those its own token names. */
  act: Act
  /** Their ids, the present one first. */
  chain: string[]
  /** Whom the actor token was issued to. */
  clientId: string | undefined
  /** The authorization or the impersonation that the actor token came of. */
  sid: string | undefined
  /** In seconds: who acts through somebody else does so no longer than as that person. */
  latestExpiry: number
  /** `read`: the actor token only reads. */
  access: 'read' | undefined
  /** How and when the actor signed in for it. */
  signIn: SignInFacts | undefined
}

/** Whether the actor token has to be verified first, because it is not stored here. */
export const isActorJwt = ({ actorToken }: ExchangeRequest): boolean => actorToken?.includes('.') ?? false

/** Of a token that is stored here; undefined when there is none. */
export const storedActor = ({ actorToken }: ExchangeRequest): PresentedActor | undefined =>
  actorToken === undefined ? undefined : { kind: 'opaque-token', digest: tokenDigest('opaque-token', actorToken) }

export const presentActor = async (
  input: ExchangeRequest,
  verifier: AccessTokenVerifier,
): Promise<PresentedActor | undefined> => {
  const { actorToken } = input
  return actorToken?.includes('.') ? presentJwt(actorToken, verifier) : storedActor(input)
}

const presentJwt = async (actorToken: string, verifier: AccessTokenVerifier): Promise<PresentedActor> => {
  const claims = await verifier.verify(actorToken, { audience: undefined }).catch((error) => {
    throw error instanceof JwtError ? refused('actor_token_invalid') : error
  })
  return {
    kind: 'jwt',
    userId: claims.sub,
    sessionId: claims.sid,
    scope: claims.scope ?? '',
    act: claims.act,
    fromPersonalAccessToken: cameFromPersonalAccessToken(claims),
    clientId: claims.client_id,
    cnf: claims['cnf'],
    access: claims['access'] === 'read' ? 'read' : null,
    expiresAt: claims.exp,
    signIn: signInOf(claims),
    claims,
  }
}

const signInOf = ({ acr, auth_time: authTime }: VerifiedClaims): SignInFacts | undefined =>
  typeof acr === 'string' && typeof authTime === 'number' ? { acr, authTime } : undefined

/**
 * The acting party. Throws the refusal that applies first; a subject token bound to an actor takes no other, and
 * not none.
 */
export const checkActor = (
  presented: PresentedActor | undefined,
  facts: ExchangeFacts,
  /** Of the key that the request proved. */
  jkt: string | undefined,
): Actor | undefined => {
  const actor = presented && actorOf(presented, facts, jkt)
  if (facts.boundActorId !== null && facts.boundActorId !== actor?.id) throw refused('subject_token_bound')
  return actor
}

const actorOf = (presented: PresentedActor, facts: ExchangeFacts, jkt: string | undefined): Actor => {
  const { actorId, opaqueActor } = facts
  const token = presented.kind === 'jwt' ? { ...presented, expired: false } : opaqueActor
  if (!token || token.expired || facts.actorSessionEnded || actorId === null) throw refused('actor_token_invalid')
  if (!isConfirmedBy(token.cnf, jkt)) throw refused('actor_token_bound')
  // Exactly `openid`: not a name that contains it.
  if (!token.scope.split(' ').includes('openid')) throw refused('actor_token_scope')
  if (facts.actorSuspended) throw refused('actor_suspended')
  // After suspension, which revokes too and is the better answer.
  const revocable =
    presented.kind === 'jwt'
      ? revocableJwt(presented.claims)
      : opaqueActor && revocableOpaqueToken(opaqueActor, actorId)
  if (revocable && isRevoked(facts, revocable)) throw refused('actor_token_invalid')
  const act: Act = token.act ? { sub: actorId, act: onlySubjects(token.act) } : { sub: actorId }
  const chain = chainOf(act)
  if (chain.length > maxActDepth) throw refused('act_chain_too_deep')
  const { sessionId, clientId, signIn, fromPersonalAccessToken } = token
  const via = actorViaOf({ sid: sessionId, fromPersonalAccessToken })
  const latestExpiry = via === 'subject_token' ? token.expiresAt : Number.POSITIVE_INFINITY
  return {
    ...{ id: actorId, via, act, chain, clientId, latestExpiry },
    sid: sessionId ?? undefined,
    access: token.access ?? undefined,
    signIn: signIn ?? undefined,
  }
}

const onlySubjects = ({ sub, act }: Act): Act => (act ? { sub, act: onlySubjects(act) } : { sub })

const chainOf = (act: Act): string[] => (act.act ? [act.sub, ...chainOf(act.act)] : [act.sub])
