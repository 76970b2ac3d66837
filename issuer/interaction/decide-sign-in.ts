import type { Query } from '../../platform/database/database.ts'
import type { SignInDecision, SignInStage } from '../../policies/sign-in.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import { acrs, type Session } from '../tokens/sessions/session.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import { canProve, type PersonFacts, secondFactors } from './person-facts.ts'
import { findPersonFacts } from './person-facts-store.ts'
import {
  authenticating,
  authenticationBy,
  identifies,
  isAtLeast,
  type Proof,
  type ProofKindName,
  reachableAcr,
} from './proofs.ts'
import { findRuleFacts, type RuleFacts } from './rule-facts-store.ts'
import { firstFactors, type SignInSettings } from './settings.ts'
import type { SignInPolicy, SignInQuestion } from './sign-in-policy.ts'
import type { Visitor } from './visitor.ts'

/** A person who stands before the issuer, as the rules are asked about them. */
export interface DecisionQuestion {
  stage: 'session' | 'mfa' | 'finish'
  client: Pick<AuthorizationClient, 'id' | 'name' | 'type' | 'isThirdParty'>
  settings: SignInSettings
  person: Omit<PersonFacts, 'isPasswordExpired'>
  /** Undefined: somebody new. */
  userId: string | undefined
  proofs: readonly Proof[]
  /** At the stage `session`: it stands in for proofs. */
  session?: Pick<Session, 'amr' | 'acr'> | undefined
  visitor: Visitor
}

/** Asks the rules. Throws 503 when they give no decision. */
export type DecideSignIn = (query: Query, question: DecisionQuestion) => Promise<SignInDecision>

/**
 * Asks the rules of a session that is about to answer for its person. Undefined where there are only the shipped ones,
 * which ask nothing of sessions. Throws 503 when they give no decision.
 */
export type DecideSession = (
  query: Query,
  question: Pick<DecisionQuestion, 'client' | 'settings' | 'visitor'> & {
    session: Pick<Session, 'userId' | 'amr' | 'acr'>
  },
) => Promise<SignInDecision | undefined>

/** What is counted of this account, as far as it is about whoever stands here. */
const failureKeysOf = (hmac: Hmac, userId: string, device: Buffer | null): Buffer[] => {
  const keys = lockoutKeys(hmac)
  return [keys.user(userId), keys.secondFactor(userId), ...(device === null ? [] : [keys.device(userId, device)])]
}

const [, multiFactor] = acrs

const nothingKnown = { roles: [], organizations: [], isDeviceKnown: false, failures: 0 }

export const createDecideSignIn =
  ({
    policy,
    hmac,
    lockout,
    now,
  }: {
    policy: SignInPolicy
    hmac: Hmac
    lockout: () => LockoutPolicy
    now: () => Date
  }): DecideSignIn =>
  async (query, { visitor, ...question }) => {
    const { userId } = question
    // The shipped rules read none of these.
    const isAsked = userId !== undefined && policy.asksOwnRules()
    const device = visitor.device === undefined ? null : tokenDigest('device', visitor.device)
    const facts = isAsked
      ? await findRuleFacts(query, {
          ...{ userId, device, failureKeys: failureKeysOf(hmac, userId, device) },
          windowSeconds: lockout().windowSeconds,
        })
      : nothingKnown
    const { country } = visitor.signInContext
    return policy.decideSignIn(questionOf({ ...question, facts, ip: visitor.origin.ip, country, now: now() }))
  }

export const createDecideSession =
  ({ policy, decide }: { policy: SignInPolicy; decide: DecideSignIn }): DecideSession =>
  async (query, question) => {
    if (!policy.asksOwnRules()) return undefined
    const { userId } = question.session
    const person = await findPersonFacts(query, userId)
    // Deleted a moment ago, with the session: no code comes of it.
    return person && decide(query, { ...question, stage: 'session', person, userId, proofs: [] })
  }

interface Known extends Omit<DecisionQuestion, 'stage' | 'visitor' | 'proofs'> {
  stage: SignInStage
  proofs: readonly (Pick<Proof, 'kind' | 'purpose'> & Partial<Pick<Proof, 'data'>>)[]
  facts: RuleFacts
  ip: string
  country: string | undefined
  now: Date
}

/** What the rules are asked of what is known. */
export const questionOf = (known: Known): SignInQuestion => {
  const { stage, client, settings, person, userId, proofs, session, facts, ip, country, now } = known
  const { factors, policy, organizationRequiredMfaPolicy = 'NoPrompt' } = settings.mfa
  const counted = authenticating(proofs)
  const { amr, acr } = session ?? (counted.length > 0 ? authenticationBy(counted) : { amr: [], acr: undefined })
  const first = counted.find(identifies)
  const provider = first?.data?.federated
  const areTwo = (one: ProofKindName, other: ProofKindName) => isAtLeast(reachableAcr([one, other]), multiFactor)
  const beginnings = firstFactors(settings).filter((kind) => canProve(kind, person))
  // A mailbox that told who it is does not tell it again, unless the person could have begun with something else.
  const isSecond = (kind: ProofKindName) =>
    !first || areTwo(first.kind, kind) || beginnings.some((other) => areTwo(other, kind))
  return {
    stage,
    client: { id: client.id, name: client.name, type: client.type, isThirdParty: client.isThirdParty },
    ...(userId !== undefined && {
      subject: { id: userId, roles: facts.roles, organizations: facts.organizations },
    }),
    factors: {
      available: factors
        .filter((name) => secondFactors[name].isHeld(person))
        .map((name) => secondFactors[name].proof)
        .filter(isSecond),
      used: counted.map(({ kind }) => kind),
    },
    ...(provider && {
      federation: { connector: provider.connectorId, kind: provider.kind, target: provider.target },
    }),
    amr: [...amr],
    ...(acr !== undefined && { acr }),
    ip,
    ...(country !== undefined && { country }),
    device: { known: facts.isDeviceKnown },
    failures: facts.failures,
    now: Math.floor(now.getTime() / 1_000),
    settings: {
      mfa: {
        policy,
        factors: factors.map((name) => secondFactors[name].proof),
        organizationPolicy: organizationRequiredMfaPolicy,
        organizations: [...person.mfaOrganizations],
      },
    },
  }
}
