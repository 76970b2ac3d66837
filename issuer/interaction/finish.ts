import type { EventRequest } from '../../events/outbox.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import { randomToken, uuidv7 } from '../../platform/ids.ts'
import type { Cookies } from '../base/cookies.ts'
import { isDeadlock } from '../base/errors/constraint-errors.ts'
import { matchesRedirectUri } from '../base/redirect-uri.ts'
import { authorizationCode, type GrantedCode } from '../tokens/authorizations/authorization-store.ts'
import { saveConsent, useConsent } from '../tokens/consents/consent-store.ts'
import { decideDeviceCode } from '../tokens/device-codes/device-code-store.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { type AuthorizationResponse, authorizationResponse } from './authorization-response.ts'
import { type BecomePerson, TakenError, type TakenField } from './become-person.ts'
import { extendedConsent } from './consent.ts'
import { grantCode } from './grant-code.ts'
import { keepDecision, voidProofs } from './interaction-changes-store.ts'
import { interactionPath } from './interaction-path.ts'
import type { InteractionState } from './interaction-state.ts'
import { finishInteraction, type Interaction, lockInteraction } from './interaction-store.ts'
import type { Notices } from './notices.ts'
import { recordingOf } from './recording.ts'
import { resetPassword } from './reset-password.ts'
import { openRedirect, type Redirect, sealRedirect } from './sealed-redirect.ts'
import {
  createSignInPerson,
  endAfterSignIn,
  type SignedIn,
  type SignInPerson,
  type SigningIn,
} from './sign-in-person.ts'
import type { SessionLimits } from './sign-in-session.ts'
import { isProven, newPerson, type Situation } from './situation.ts'
import type { StandingOf } from './standing.ts'
import type { Step } from './step.ts'
import type { Visitor } from './visitor.ts'

export type Proceeded =
  /** It is finished, just now or a moment ago. */
  | { kind: 'redirect'; redirect: Redirect }
  /** Something is missing: a page asks for it. */
  | { kind: 'page' }
  /** There is another password, and the interaction goes on with signing in. */
  | { kind: 'reset' }
  /** Somebody else has it since it was entered. */
  | { kind: 'taken'; fields: readonly TakenField[] }
  /** It was finished before, or its time is over. */
  | { kind: 'over' }
  /** The client, or its redirect URI, is no longer registered. */
  | { kind: 'client_gone' }

export interface Finish {
  /**
   * Keeps what the person decided, and finishes the interaction if nothing is missing: all of it in one transaction.
   * `browser` is the value of the cookie that the interaction belongs to.
   */
  proceed(
    id: string,
    visitor: Visitor & { browser: string },
    request: EventRequest,
    decision?: InteractionState,
  ): Promise<Proceeded>
}

export interface FinishDependencies {
  database: Pick<Database, 'transaction'>
  /** The publisher of the outbox. */
  events: { wake(): void }
  cookies: Cookies
  /** Of tokens and of discovery. */
  issuer: string
  sessionLimits: () => Promise<SessionLimits>
  standingOf: StandingOf
  becomePerson: BecomePerson
  notices: Notices
}

const deadlockAttempts = 3

/** What was read is no longer so: the transaction is rolled back, and a page asks again. */
const overtaken = Symbol('overtaken')
/** The device that this was for no longer waits: nothing of it happens. */
const tooLate = Symbol('too late')

export const createFinish = (dependencies: FinishDependencies): Finish => {
  const { database, events, sessionLimits } = dependencies
  const signInPerson = createSignInPerson(dependencies)

  const tryOften = async (work: () => Promise<Proceeded>): Promise<Proceeded> => {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (error === overtaken) return { kind: 'page' }
        if (error === tooLate) return { kind: 'over' }
        if (error instanceof TakenError) return { kind: 'taken', fields: error.fields }
        // Whoever deletes the person or the client meanwhile locks the same rows in another order.
        if (!isDeadlock(error) || tries === deadlockAttempts) throw error
      }
    }
  }

  return {
    async proceed(id, visitor, request, decision = {}) {
      const limits = await sessionLimits()
      // What one sign-in does is told as one.
      const told = { correlationId: uuidv7(), ...request }
      const finishing = { ...dependencies, signInPerson, limits, id, visitor, request: told, decision }
      const proceeded = await tryOften(() => database.transaction((trx) => finishWithin({ ...finishing, trx })))
      if (proceeded.kind === 'redirect' || proceeded.kind === 'reset') events.wake()
      return proceeded
    },
  }
}

interface Finishing extends Pick<FinishDependencies, 'issuer' | 'standingOf' | 'notices'> {
  trx: Query
  signInPerson: SignInPerson
  limits: SessionLimits
  id: string
  visitor: Visitor & { browser: string }
  request: EventRequest
  decision: InteractionState
}

const finishWithin = async (finishing: Finishing): Promise<Proceeded> => {
  const { trx, id, visitor, decision, limits } = finishing
  const found = await lockInteraction(trx, id)
  if (!found) return { kind: 'over' }
  const { client, request, isFinished, isOpen, redirect: sealed } = found
  if (isFinished && sealed) return { kind: 'redirect', redirect: openRedirect(sealed, visitor.browser, id) }
  if (!isOpen) return { kind: 'over' }
  if (
    !request.device &&
    !matchesRedirectUri(client.redirectUris, request.redirectUri, { native: client.type === 'Native' })
  ) {
    return { kind: 'client_gone' }
  }

  const interaction = await decided(finishing, found)
  const { situation, step } = await finishing.standingOf(trx, interaction, visitor, { hold: true })
  if (step.step !== 'done' && step.step !== 'denied') {
    if (Object.keys(decision).length > 0) await keepDecision(trx, id, decision)
    return { kind: 'page' }
  }

  const recording = recordingOf(trx, interaction, finishing.request)
  const { event, person, staged } = interaction
  if (event === 'ForgotPassword' && step.step === 'done') {
    if (!person || !staged.password) throw overtaken
    const { settings } = situation
    const resetting = { interaction, visitor, settings, userId: person.id, digest: staged.password }
    const isReset = await resetPassword(resetting, { ...finishing, recording })
    return { kind: isReset ? 'reset' : 'page' }
  }

  const signingIn = { recording, interaction, situation, visitor, limits }
  const complete = async (
    session: SignedIn['session'] | undefined,
    setCookies: readonly string[],
  ): Promise<Redirect> => {
    const { response, code, error } = await answerOf(finishing, request, step)
    const redirect = { response, setCookies }
    // Neither needs the answer of the other, so they are sent together.
    await Promise.all([
      code && authorize(signingIn, session, code),
      conclude(finishing, interaction, { redirect, error, userId: session?.userId }),
    ])
    return redirect
  }
  if (!signsIn(step, situation)) return { kind: 'redirect', redirect: await complete(situation.session, []) }
  const done = await finishing.signInPerson(signingIn, ({ session, setCookies }) => complete(session, setCookies))
  if (!done) {
    await voidProofs(trx, id)
    return { kind: 'page' }
  }
  await endAfterSignIn(done.signedIn, signingIn)
  return { kind: 'redirect', redirect: done.completed }
}

/** What the client gets, and where the browser goes. */
interface Answer {
  response: AuthorizationResponse
  /** Good for tokens. */
  code?: GrantedCode
  error?: string
}

const answerOf = async (
  { trx, id, issuer }: Finishing,
  request: AuthorizationRequest,
  { step, options }: Step,
): Promise<Answer> => {
  const { error = 'access_denied', description = '' } = options
  if (request.device) {
    const digest = Buffer.from(request.device.code, 'hex')
    const isAllowed = step === 'done'
    const ttl = await decideDeviceCode(trx, digest, isAllowed)
    // The page of the interaction says what became of it.
    const response = { location: interactionPath(id) }
    if (!isAllowed) return { response, error }
    if (ttl === undefined) throw tooLate
    return { response, code: { digest, ttl } }
  }
  if (step !== 'done') return { response: authorizationResponse(request, { error, description }, issuer), error }
  if (request.responseType === 'none') return { response: authorizationResponse(request, { code: undefined }, issuer) }
  const code = randomToken()
  return { response: authorizationResponse(request, { code }, issuer), code: authorizationCode(code) }
}

/** The interaction with the decision that is being made. Whoever wants another account is none of those proven. */
const decided = async ({ trx, id, decision }: Finishing, found: Interaction): Promise<Interaction> => {
  const state = { ...found.state, ...decision }
  if (decision.account !== false || found.proofs.length === 0) return { ...found, state }
  await voidProofs(trx, id)
  return { ...found, state, proofs: [], person: undefined }
}

/** Refusing what an application asks for does not undo the sign-in; a sign-in that was broken off is none. */
const signsIn = ({ step, reasons }: Step, situation: Situation): boolean => {
  if (situation.event === 'Register') return step === 'done'
  return isProven(situation) && (step === 'done' || (situation.event === 'SignIn' && reasons.includes('consent')))
}

/** What the code stands for, and the consent that the client was given. */
const authorize = async (
  { recording, interaction: { client, request }, situation }: SigningIn,
  session: { id: string; userId: string } | undefined,
  code: GrantedCode,
): Promise<void> => {
  const { trx, record } = recording
  const { consent, state, event } = situation
  const isGranted = session && (await grantCode(trx, { code, request, client, consent, session }))
  if (!isGranted) throw overtaken
  if (!client.isThirdParty) return
  const { userId } = session
  if (state.consent?.userId !== (event === 'Register' ? newPerson : userId)) {
    await useConsent(trx, userId, client.id)
    return
  }
  const granted = extendedConsent(situation, state.consent.organizationIds)
  await saveConsent(trx, { ...granted, userId, clientId: client.id })
  await record({
    type: 'Consent.Granted',
    entity: { kind: 'user', id: userId },
    data: null,
    extras: { userId, applicationId: client.id, ...granted },
  })
}

/** It is used up, and says for some seconds where it led. */
const conclude = async (
  { trx, id, visitor, decision }: Finishing,
  { client }: Interaction,
  { redirect, error, userId }: { redirect: Redirect; error: string | undefined; userId: string | undefined },
) => {
  const { ip, userAgent } = visitor.origin
  const isFinished = await finishInteraction(trx, id, {
    redirect: sealRedirect(redirect, visitor.browser, id),
    decision,
    audit: {
      key: 'Interaction.End',
      result: error === undefined ? 'Success' : 'Error',
      applicationId: client.id,
      userId,
      payload: { interactionId: id, ip, userAgent, error },
    },
  })
  if (!isFinished) throw overtaken
}
