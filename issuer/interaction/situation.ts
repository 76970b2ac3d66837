import type { SignInDecision } from '../../policies/sign-in.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import type { Session } from '../tokens/sessions/session.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { InteractionEventName, InteractionState, Staged } from './interaction-state.ts'
import type { PersonFacts } from './person-facts.ts'
import { identifies, type Proof, type ProofKindName } from './proofs.ts'
import type { SignInSettings } from './settings.ts'
import type { Step } from './step.ts'

/** What an interaction is about and what is known of who stands before it. */
export interface Situation {
  event: InteractionEventName
  request: AuthorizationRequest
  client: Pick<AuthorizationClient, 'type' | 'isThirdParty'>
  settings: SignInSettings
  /** Of this browser. */
  session: KnownSession | undefined
  /** Of this interaction. */
  proofs: readonly Proof[]
  staged: Staged
  /** Whom the proofs name, when they name somebody. */
  person: PersonFacts | undefined
  /** What the rules say of that person; of nobody's proofs, of the session. */
  decision: SignInDecision | undefined
  /** Of the person whom `whoIsIt` names; only third-party applications need it. */
  consent: Consent | undefined
  state: InteractionState
}

/** `age`: seconds since the person authenticated, by the database's clock. */
export type KnownSession = Pick<Session, 'id' | 'userId' | 'acr'> & { age: number }

/** A question of `nextStep`: what is due, while something is missing for it. */
export type Question = (situation: Situation) => Step | undefined

/** Stands for the id of somebody who gets one when the interaction finishes. */
export const newPerson = 'new'

/** Whose sign-in it is: who proved it here, else who has the session. Somebody new is nobody yet. */
export const whoIsIt = ({ event, session, proofs }: Pick<Situation, 'event' | 'session' | 'proofs'>) =>
  proofs.find(identifies)?.userId ?? (event === 'Register' ? undefined : session?.userId)

/** An address that is nobody's may have been proven: that is a beginning of an account, and no sign-in. */
export const isProven = ({ proofs }: Situation): boolean =>
  proofs.some((proof) => identifies(proof) && proof.userId !== null)

export const isProvenBy = ({ proofs }: Situation, kind: ProofKindName): boolean =>
  proofs.some((proof) => identifies(proof) && proof.kind === kind)
