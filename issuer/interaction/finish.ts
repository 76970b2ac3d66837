import { type EventRequest, recordEvent } from '../../events/outbox.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import type { Cookies } from '../base/cookies.ts'
import { isDeadlock } from '../base/errors/constraint-errors.ts'
import { matchesRedirectUri } from '../base/redirect-uri.ts'
import { toUser, type UserRow } from '../directory/users/user.ts'
import { endSessionHere } from '../tokens/authorizations/end.ts'
import { findConsent, saveConsent, useConsent } from '../tokens/consents/consent-store.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { type AuthorizationResult, authorizationResponse } from './authorization-response.ts'
import { extendedConsent } from './consent.ts'
import { grantCode } from './grant-code.ts'
import type { InteractionState } from './interaction-state.ts'
import { finishInteraction, type Interaction, keepDecision, lockInteraction, voidProofs } from './interaction-store.ts'
import { nextStep, type Situation, whoIsIt } from './next-step.ts'
import { holdPerson, keepDevice, notePersonSignsIn } from './person-store.ts'
import { identifies } from './proofs.ts'
import { openRedirect, type Redirect, sealRedirect } from './sealed-redirect.ts'
import { establishSession, type SessionLimits } from './sign-in-session.ts'
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
}

/** As long as the browser keeps it, in seconds. */
const deviceCookieLife = 400 * 86_400
const deadlockAttempts = 3

/** What was read is no longer so: the transaction is rolled back, and a page asks again. */
const overtaken = Symbol('overtaken')

export const createFinish = ({ database, events, cookies, issuer, sessionLimits }: FinishDependencies): Finish => {
  const tryOften = async (work: () => Promise<Finished>): Promise<Finished> => {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (error === overtaken) return { kind: 'page', hasEvent: false }
        // Whoever deletes the person or the client meanwhile locks the same rows in another order.
        if (!isDeadlock(error) || tries === deadlockAttempts) throw error
      }
    }
  }

  return {
    async proceed(id, visitor, request, decision = {}) {
      const limits = await sessionLimits()
      const { hasEvent, ...proceeded } = await tryOften(() =>
        database.transaction((trx) => finishWithin({ trx, limits, cookies, issuer, id, visitor, request, decision })),
      )
      if (hasEvent) events.wake()
      return proceeded
    },
  }
}

type FinishingVisitor = Visitor & { browser: string }
type Finished = Proceeded & { hasEvent: boolean }

interface Finishing {
  trx: Query
  limits: SessionLimits
  cookies: Cookies
  issuer: string
  id: string
  visitor: FinishingVisitor
  request: EventRequest
  decision: InteractionState
}

const finishWithin = async (finishing: Finishing): Promise<Finished> => {
  const { trx, id, visitor, decision } = finishing
  const found = await lockInteraction(trx, id)
  if (!found) return { kind: 'over', hasEvent: false }
  // Whoever wants another account is none of those who were proven.
  const interaction = decision.account === false ? { ...found, proofs: [] } : found
  const { client, request, isFinished, isOpen, redirect } = interaction
  if (isFinished && redirect) {
    return { kind: 'redirect', redirect: openRedirect(redirect, visitor.browser, id), hasEvent: false }
  }
  if (!isOpen) return { kind: 'over', hasEvent: false }
  if (!matchesRedirectUri(client.redirectUris, request.redirectUri, { native: client.type === 'Native' })) {
    return { kind: 'client_gone', hasEvent: false }
  }

  if (interaction.proofs.length < found.proofs.length) await voidProofs(trx, id)
  const situation = await situationOf(finishing, interaction)
  const next = nextStep(situation)
  if (next.step !== 'done' && next.step !== 'denied') {
    if (Object.keys(decision).length > 0) await keepDecision(trx, id, decision)
    return { kind: 'page', hasEvent: false }
  }

  // Refusing what an application asks for does not undo the sign-in; a sign-in that was broken off is none.
  const isSigningIn = interaction.proofs.some(identifies) && (next.step === 'done' || next.reasons.includes('consent'))
  const signedIn = isSigningIn ? await signIn(finishing, interaction, situation) : undefined
  if (isSigningIn && !signedIn) {
    await voidProofs(trx, id)
    return { kind: 'page', hasEvent: false }
  }
  const session = signedIn?.session ?? situation.session
  const { error = 'access_denied', description = '' } = next.options
  const result =
    next.step === 'done' ? await authorize(finishing, situation, interaction, session) : { error, description }
  const led = {
    response: authorizationResponse(request, result, finishing.issuer),
    setCookies: signedIn?.setCookies ?? [],
  }
  await conclude(finishing, interaction, { redirect: led, result, userId: session?.userId })
  if (signedIn) await recordSignIn(finishing, interaction, signedIn.user)
  // Last, because of the revocation feed.
  if (signedIn && situation.session && situation.session.userId !== signedIn.user.id) {
    await endSessionHere(trx, {
      sessionId: situation.session.id,
      clientId: client.id,
      reason: 'signed_in_again',
      endedBy: signedIn.user.id,
    })
  }
  return { kind: 'redirect', redirect: led, hasEvent: signedIn !== undefined }
}

/** Everything `nextStep` asks for, as it stays until the transaction ends. */
const situationOf = async (
  { trx, visitor, decision }: Finishing,
  { client, request, proofs, state }: Interaction,
): Promise<Situation> => {
  const session = visitor.session === undefined ? undefined : await findSession(trx, visitor.session)
  const userId = whoIsIt({ session, proofs })
  let consent: Situation['consent']
  if (client.isThirdParty && userId !== undefined) {
    // So that nobody adds to the consent meanwhile.
    await holdPerson(trx, userId)
    consent = await findConsent(trx, userId, client.id)
  }
  return { request, client, session, proofs, consent, state: { ...state, ...decision } }
}

/** Undefined when what was proven is true no longer: another password, a suspension. */
const signIn = async (
  { trx, limits, cookies, visitor }: Finishing,
  { proofs }: Interaction,
  { session: current, state }: Situation,
): Promise<{ user: UserRow; session: { id: string; userId: string }; setCookies: string[] } | undefined> => {
  const userId = proofs.find(identifies)!.userId
  const mark = proofs.find(({ data }) => data.digest !== undefined)?.data.digest
  const user = await notePersonSignsIn(trx, userId, mark)
  if (!user) return undefined
  const { id, setCookie } = await establishSession(trx, cookies, {
    current,
    userId,
    proofs,
    keep: state.keep === true,
    limits,
    visitor,
  })
  const device = randomToken()
  await keepDevice(trx, {
    from: visitor.device === undefined ? undefined : tokenDigest('device', visitor.device),
    to: tokenDigest('device', device),
    userId,
  })
  return {
    user,
    session: { id, userId },
    setCookies: [setCookie, cookies.set('device', device, { maxAge: deviceCookieLife })],
  }
}

const authorize = async (
  { trx }: Finishing,
  situation: Situation,
  { client, request }: Interaction,
  session: { id: string; userId: string } | undefined,
): Promise<AuthorizationResult> => {
  const { consent, state } = situation
  const code = session && (await grantCode(trx, { request, client, consent, session }))
  if (session === undefined || code === undefined) throw overtaken
  const { userId } = session
  if (client.isThirdParty) {
    if (state.consent?.userId === userId) {
      const extended = extendedConsent(situation, state.consent.organizationIds)
      await saveConsent(trx, { ...extended, userId, clientId: client.id })
    } else await useConsent(trx, userId, client.id)
  }
  return { code }
}

/** It is used up, and says for some seconds where it led. */
const conclude = async (
  { trx, id, visitor, decision }: Finishing,
  { client }: Interaction,
  { redirect, result, userId }: { redirect: Redirect; result: AuthorizationResult; userId: string | undefined },
) => {
  const isFinished = await finishInteraction(trx, id, {
    redirect: sealRedirect(redirect, visitor.browser, id),
    decision,
    audit: {
      key: 'Interaction.End',
      result: 'error' in result ? 'Error' : 'Success',
      applicationId: client.id,
      userId,
      payload: {
        interactionId: id,
        ip: visitor.origin.ip,
        userAgent: visitor.origin.userAgent,
        ...('error' in result ? { error: result.error } : {}),
      },
    },
  })
  if (!isFinished) throw overtaken
}

const recordSignIn = async ({ trx, id, request }: Finishing, { client }: Interaction, row: UserRow) => {
  const user = toUser(row)
  const { type, name, description } = client
  await recordEvent(trx, {
    type: 'PostSignIn',
    entity: { kind: 'user', id: user.id },
    data: user,
    extras: {
      interactionEvent: 'SignIn',
      sessionId: id,
      userIp: request.ip,
      userId: user.id,
      user,
      application: { id: client.id, type, name, description },
    },
    request,
  })
}
