import type { Consent } from '../tokens/consents/consent.ts'
import type { Session } from '../tokens/sessions/session.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { isConsentNeeded } from './consent.ts'
import type { InteractionState } from './interaction-state.ts'
import { identifies, type Proof, type ProofKindName, reachableAcr, satisfiesAcr } from './proofs.ts'

/** What an interaction is about and what is known of who stands before it. */
export interface Situation {
  request: AuthorizationRequest
  client: Pick<AuthorizationClient, 'type' | 'isThirdParty'>
  /** Of this browser. */
  session: KnownSession | undefined
  /** Of this interaction. */
  proofs: readonly Proof[]
  /** Of the person whom `whoIsIt` names; only third-party applications need it. */
  consent: Consent | undefined
  state: InteractionState
}

/** `age`: seconds since the person authenticated, by the database's clock. */
export type KnownSession = Pick<Session, 'id' | 'userId' | 'acr'> & { age: number }

export type StepName = 'sign_in' | 'select_account' | 'consent' | 'done' | 'denied'
export type Reason =
  | 'no_session'
  | 'login'
  | 'max_age'
  | 'hint'
  | 'acr'
  | 'another_account'
  | 'select_account'
  | 'consent'

export interface Step {
  step: StepName
  /** Why; empty when `done`. */
  reasons: readonly Reason[]
  /** `sign_in`: the kinds of proof that lead on. `denied`: what the client is told. */
  options: { proofs?: readonly ProofKindName[]; error?: DenialError; description?: string }
}

export type DenialError = 'access_denied' | 'login_required'

/** What everybody can prove so far. */
const offered: readonly ProofKindName[] = ['password']

const step = (name: StepName, reasons: readonly Reason[] = [], options: Step['options'] = {}): Step => ({
  step: name,
  reasons,
  options,
})

const denied = (error: DenialError, description: string, reasons: readonly Reason[] = []) =>
  step('denied', reasons, { error, description })

/** Whose sign-in it is: who proved it here, else who has the session. */
export const whoIsIt = ({ session, proofs }: Pick<Situation, 'session' | 'proofs'>): string | undefined =>
  proofs.find(identifies)?.userId ?? session?.userId

/**
 * What comes next, of what is known alone. Pages show it, and `finish` asks it again, of locked rows, before anything
 * is committed: no way around a step leads to a code.
 */
export const nextStep = (situation: Situation): Step => {
  const { request, client, session, proofs, consent, state } = situation
  if (state.isCancelled) return denied('access_denied', 'The sign-in was cancelled.')
  const isProven = proofs.some(identifies)
  if (!isProven) {
    const reasons = reasonsToSignIn(situation)
    if (reasons.length > 0) return step('sign_in', reasons, { proofs: offered })
    if (request.prompts.includes('select_account') && !isChosen(session, state)) {
      return step('select_account', ['select_account'])
    }
  }
  const userId = whoIsIt(situation)!
  // OpenID Connect Core §3.1.2.1, `id_token_hint`: somebody else has signed in.
  if (request.expectedUserId !== undefined && request.expectedUserId !== userId) {
    return denied('login_required', 'Another user has signed in than the one whom the client expects.', ['hint'])
  }
  if (state.consent?.userId === userId) {
    if (!state.consent.isAllowed) return denied('access_denied', 'The user refused.', ['consent'])
  } else if (isConsentNeeded({ request, client, consent })) {
    return step('consent', ['consent'])
  }
  return step('done')
}

/** Only a proof in this interaction answers any of them: what another tab did is not what was asked for here. */
const reasonsToSignIn = ({ request, session, state }: Situation): Reason[] => {
  if (!session) return ['no_session']
  const { prompts, maxAge, expectedUserId, acrValues } = request
  const isAcrWithinReach = satisfiesAcr(reachableAcr(offered), acrValues)
  const reasons: Record<string, boolean> = {
    login: prompts.includes('login') || prompts.includes('create'),
    max_age: maxAge !== undefined && session.age >= maxAge,
    hint: expectedUserId !== undefined && expectedUserId !== session.userId,
    acr: isAcrWithinReach && !satisfiesAcr(session.acr, acrValues),
    another_account: state.account === false,
  } satisfies Partial<Record<Reason, boolean>>
  return Object.keys(reasons).filter((reason): reason is Reason => reasons[reason] === true)
}

const isChosen = (session: KnownSession | undefined, { account }: InteractionState): boolean =>
  typeof account === 'object' && account.sessionId === session?.id

/** What a request with `prompt=none` is refused with (OpenID Connect Core §3.1.2.6). */
export interface RefusalWithoutPages {
  error: 'account_selection_required' | 'consent_required' | DenialError
  description: string
}

export const refusalWithoutPages: Readonly<Record<Exclude<StepName, 'done'>, RefusalWithoutPages>> = {
  sign_in: { error: 'login_required', description: 'The user has to sign in.' },
  select_account: { error: 'account_selection_required', description: 'The user has to choose an account.' },
  consent: { error: 'consent_required', description: 'The user has to allow this.' },
  denied: { error: 'access_denied', description: 'The user refused.' },
}
