import type { EventRequest } from '../../events/outbox.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import { randomToken, uuidv7 } from '../../platform/ids.ts'
import type { SignInDecision } from '../../policies/sign-in.ts'
import type { Cookies } from '../base/cookies.ts'
import { isDeadlock } from '../base/errors/constraint-errors.ts'
import { addressNotices, type OwnerNotice } from '../base/owner-notices.ts'
import { matchesRedirectUri } from '../base/redirect-uri.ts'
import { changePassword } from '../directory/users/new-password.ts'
import { toUser, type User, type UserRow } from '../directory/users/user.ts'
import { endAllOfUser, endSessionHere } from '../tokens/authorizations/end.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import { saveConsent, useConsent } from '../tokens/consents/consent-store.ts'
import { forgetDevices } from '../tokens/sessions/known-device-store.ts'
import { acrs } from '../tokens/sessions/session.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { type AuthorizationResult, authorizationResponse } from './authorization-response.ts'
import { type Became, type BecomePerson, recordingOf, TakenError, type TakenField } from './become-person.ts'
import { extendedConsent } from './consent.ts'
import { deviceLabel } from './device-label.ts'
import { grantCode } from './grant-code.ts'
import { readIdentifier } from './identifier.ts'
import type { InteractionState } from './interaction-state.ts'
import {
  beginEvent,
  finishInteraction,
  type Interaction,
  keepDecision,
  lockInteraction,
  voidProofs,
} from './interaction-store.ts'
import { newPerson, type Situation } from './next-step.ts'
import type { Notices } from './notices.ts'
import { holdPerson, keepDevice, notePersonSignsIn } from './person-store.ts'
import { authenticating, authenticationBy, identifies, type Proof, type ProofKindName } from './proofs.ts'
import { openRedirect, type Redirect, sealRedirect } from './sealed-redirect.ts'
import { establishSession, type SessionLimits } from './sign-in-session.ts'
import type { StandingOf } from './standing.ts'
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

/** As long as the browser keeps it, in seconds. */
const deviceCookieLife = 400 * 86_400
const deadlockAttempts = 3

/** What was read is no longer so: the transaction is rolled back, and a page asks again. */
const overtaken = Symbol('overtaken')

export const createFinish = (dependencies: FinishDependencies): Finish => {
  const { database, events, sessionLimits } = dependencies

  const tryOften = async (work: () => Promise<Finished>): Promise<Finished> => {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (error === overtaken) return { kind: 'page', hasEvent: false }
        if (error instanceof TakenError) return { kind: 'taken', fields: error.fields, hasEvent: false }
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
      const finishing = { ...dependencies, limits, id, visitor, request: told, decision }
      const { hasEvent, ...proceeded } = await tryOften(() =>
        database.transaction((trx) => finishWithin({ ...finishing, trx })),
      )
      if (hasEvent) events.wake()
      return proceeded
    },
  }
}

/** Who it is, not merely that an address is theirs. */
const isOfSomebody = (proof: Proof): boolean => identifies(proof) && proof.userId !== null

type FinishingVisitor = Visitor & { browser: string }
type Finished = Proceeded & { hasEvent: boolean }

interface Finishing extends FinishDependencies {
  trx: Query
  limits: SessionLimits
  id: string
  visitor: FinishingVisitor
  request: EventRequest
  decision: InteractionState
}

const finishWithin = async (finishing: Finishing): Promise<Finished> => {
  const { trx, id, visitor, decision, request: told } = finishing
  const found = await lockInteraction(trx, id)
  if (!found) return { kind: 'over', hasEvent: false }
  const { client, request, isFinished, isOpen, redirect } = found
  if (isFinished && redirect) {
    return { kind: 'redirect', redirect: openRedirect(redirect, visitor.browser, id), hasEvent: false }
  }
  if (!isOpen) return { kind: 'over', hasEvent: false }
  if (!matchesRedirectUri(client.redirectUris, request.redirectUri, { native: client.type === 'Native' })) {
    return { kind: 'client_gone', hasEvent: false }
  }

  const interaction = await decided(finishing, found)
  const { situation, step: next } = await finishing.standingOf(trx, interaction, visitor, { hold: true })
  if (next.step !== 'done' && next.step !== 'denied') {
    if (Object.keys(decision).length > 0) await keepDecision(trx, id, decision)
    return { kind: 'page', hasEvent: false }
  }
  if (interaction.event === 'ForgotPassword' && next.step === 'done') return resetPassword(finishing, interaction)

  // Refusing what an application asks for does not undo the sign-in; a sign-in that was broken off is none.
  const isProven = interaction.event === 'Register' || situation.proofs.some(isOfSomebody)
  const isRefusal = next.step === 'denied' && next.reasons.includes('consent')
  const isSigningIn = isProven && (next.step === 'done' || (isRefusal && interaction.event === 'SignIn'))
  const signedIn = isSigningIn ? await signIn(finishing, interaction, situation) : undefined
  if (isSigningIn && !signedIn) {
    await voidProofs(trx, id)
    return { kind: 'page', hasEvent: false }
  }
  const session = signedIn?.session ?? situation.session
  const { error = 'access_denied', description = '' } = next.options
  const authorized = next.step === 'done' ? await authorize(finishing, situation, interaction, session) : undefined
  const result = authorized ? { code: authorized.code } : { error, description }
  const led = {
    response: authorizationResponse(request, result, finishing.issuer),
    setCookies: signedIn?.setCookies ?? [],
  }
  await conclude(finishing, interaction, { redirect: led, result, userId: session?.userId })
  if (signedIn) await recordSignIn(finishing, interaction, signedIn)
  if (authorized?.granted) await recordConsent(finishing, interaction, authorized.granted)
  // Last, because of the revocation feed.
  if (signedIn?.became.isPasswordNew) {
    const { session: exceptSession, user } = signedIn
    const ended = { userId: user.id, reason: 'password_changed', endedBy: user.id } as const
    await endAllOfUser(recordingOf(trx, interaction, told), { ...ended, exceptSessionId: exceptSession.id })
  }
  if (signedIn && situation.session && situation.session.userId !== signedIn.user.id) {
    await endSessionHere(recordingOf(trx, interaction, told), {
      sessionId: situation.session.id,
      clientId: client.id,
      reason: 'signed_in_again',
      endedBy: signedIn.user.id,
    })
  }
  return { kind: 'redirect', redirect: led, hasEvent: signedIn !== undefined || authorized?.granted !== undefined }
}

/** The interaction with the decision that is being made. Whoever wants another account is none of those proven. */
const decided = async ({ trx, id, decision }: Finishing, found: Interaction): Promise<Interaction> => {
  const state = { ...found.state, ...decision }
  if (decision.account !== false || found.proofs.length === 0) return { ...found, state }
  await voidProofs(trx, id)
  return { ...found, state, proofs: [], person: undefined }
}

interface SignedIn {
  user: UserRow
  session: { id: string; userId: string }
  setCookies: string[]
  became: Became
}

/** Undefined when what was proven is true no longer: another password, a suspension. */
const signIn = async (
  finishing: Finishing,
  interaction: Interaction,
  { session: current, proofs, state, decision }: Situation,
): Promise<SignedIn | undefined> => {
  const { trx, limits, cookies, visitor, request, becomePerson } = finishing
  const known = proofs.find(identifies)?.userId ?? undefined
  const mark = proofs.find(({ data }) => data.digest !== undefined)?.data.digest
  // Held before anything of it changes. Somebody new has no row to hold.
  const before = known === undefined ? undefined : await notePersonSignsIn(trx, known, mark)
  if (known !== undefined && !(before && authenticating(proofs).every((proof) => isStillOf(before, proof))))
    return undefined
  const recording = recordingOf(trx, interaction, request)
  const became = await becomePerson(trx, { interaction, proofs, userId: known, recording })
  const { userId } = became
  const user = became.change === undefined ? before : await notePersonSignsIn(trx, userId, undefined)
  if (!user) return undefined
  const { id, setCookie } = await establishSession(trx, cookies, {
    current,
    event: interaction.event,
    userId,
    proofs: proofs.filter(({ purpose }) => purpose !== 'bind'),
    authentication: authenticationOf(interaction, proofs),
    keep: state.keep === true,
    limits: shortened(limits, decision?.session),
    visitor,
  })
  if (became.isPasswordNew) await forgetDevices(trx, userId)
  const device = randomToken()
  const isKnown = await keepDevice(trx, {
    from: visitor.device === undefined ? undefined : tokenDigest('device', visitor.device),
    to: tokenDigest('device', device),
    userId,
  })
  // Whoever has just come knows of it all.
  if (before) {
    const device = deviceLabel(visitor.origin.userAgent)
    const notices: OwnerNotice[] = [
      ...(isKnown ? [] : [{ type: 'NewDevice', device } as const]),
      ...(became.isPasswordNew ? [{ type: 'PasswordChanged' } as const] : []),
      ...became.factors.map((factor) => ({ type: 'FactorAdded', factor }) as const),
      ...addressNotices(before, user),
    ]
    // An address that came just now is told nothing that another one should hear.
    const owner = before.primary_email === null && before.primary_phone === null ? user : before
    for (const notice of notices) await finishing.notices.notify(trx, interaction, visitor, owner, notice)
  }
  return {
    user,
    session: { id, userId },
    setCookies: [setCookie, cookies.set('device', device, { maxAge: deviceCookieLife })],
    became,
  }
}

/** Who registers has proven no more than what the account begins with. */
const authenticationOf = ({ event, staged: { password } }: Interaction, proofs: readonly Proof[]) => {
  if (event !== 'Register') return authenticationBy(authenticating(proofs))
  const registered = [...proofs.filter(({ purpose }) => purpose === 'register'), ...(password ? [byPassword] : [])]
  const amr = registered.flatMap((proof) => authenticationBy([proof]).amr)
  return { amr: [...new Set(amr)], acr: acrs[0] }
}

const byPassword = { kind: 'password' } as const

const addressProofs: readonly ProofKindName[] = ['email_code', 'phone_code', 'one_time_token']

/** An address says who somebody is only as long as it is theirs: one that was taken from them opens nothing. */
const isStillOf = (user: UserRow, { kind, data: { identifier } }: Proof): boolean => {
  if (!identifier || !addressProofs.includes(kind)) return true
  if (identifier.type === 'email') {
    return user.primary_email?.normalize('NFKC').toLowerCase() === identifier.value.toLowerCase()
  }
  return readIdentifier(`+${identifier.value}`)?.spellings.includes(user.primary_phone ?? '') === true
}

/** The rules may end a session earlier than the settings. */
const shortened = (
  { ttl, idleTtl }: SessionLimits,
  { absolute = ttl, idle = idleTtl }: SignInDecision['session'] = {},
): SessionLimits => ({ ttl: Math.min(ttl, absolute), idleTtl: Math.min(idleTtl, idle) })

/** It leads to a new password and back to signing in: nobody is signed in by it. */
const resetPassword = async (finishing: Finishing, interaction: Interaction): Promise<Finished> => {
  const { trx, id, request } = finishing
  const { person, staged } = interaction
  if (!person || !staged.password) throw overtaken
  const held = await holdPerson(trx, person.id)
  if (!held || !interaction.proofs.every((proof) => isStillOf(held, proof))) {
    await beginEvent(trx, { id, event: 'SignIn', isAnew: true })
    return { kind: 'page', hasEvent: false }
  }
  await beginEvent(trx, { id, event: 'SignIn', isAnew: false })
  await keepDecision(trx, id, { notice: 'password_changed' })
  const recording = recordingOf(trx, interaction, request)
  await changePassword(
    {
      trx,
      async record(event) {
        await recording.record(event)
        if (event.type !== 'User.Data.Updated') return
        const user = event.data as User
        const entity = { kind: 'user', id: user.id } as const
        await recording.record({ type: 'PostResetPassword', entity, data: user, extras: { userId: user.id, user } })
      },
    },
    {
      ...{ userId: person.id, digest: staged.password, endedBy: person.id },
      notify: (owner) =>
        finishing.notices.notify(trx, interaction, finishing.visitor, owner, { type: 'PasswordChanged' }),
    },
  )
  return { kind: 'reset', hasEvent: true }
}

type Granted = Consent & { userId: string; clientId: string }

const authorize = async (
  { trx }: Finishing,
  situation: Situation,
  { client, request }: Interaction,
  session: { id: string; userId: string } | undefined,
): Promise<{ code: string; granted: Granted | undefined }> => {
  const { consent, state, event } = situation
  const code = session && (await grantCode(trx, { request, client, consent, session }))
  if (session === undefined || code === undefined) throw overtaken
  const { userId } = session
  if (!client.isThirdParty) return { code, granted: undefined }
  const decidedBy = event === 'Register' ? newPerson : userId
  if (state.consent?.userId !== decidedBy) {
    await useConsent(trx, userId, client.id)
    return { code, granted: undefined }
  }
  const granted = { ...extendedConsent(situation, state.consent.organizationIds), userId, clientId: client.id }
  await saveConsent(trx, granted)
  return { code, granted }
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

const recordConsent = async ({ trx, request }: Finishing, interaction: Interaction, granted: Granted) => {
  const { userId, clientId: applicationId, scopes, resources, organizations } = granted
  await recordingOf(trx, interaction, request).record({
    type: 'Consent.Granted',
    entity: { kind: 'user', id: userId },
    data: null,
    extras: { userId, applicationId, scopes, resources, organizations },
  })
}

/** The names of the event by what the person came for. */
const signInEvents = { SignIn: 'PostSignIn', Register: 'PostRegister' } as const

const recordSignIn = async ({ trx, request }: Finishing, interaction: Interaction, { user: row, became }: SignedIn) => {
  const user = toUser(row)
  const entity = { kind: 'user', id: user.id } as const
  const { record } = recordingOf(trx, interaction, request)
  const type = signInEvents[interaction.event === 'Register' ? 'Register' : 'SignIn']
  await record({ type, entity, data: user, extras: { userId: user.id, user } })
  if (became.change === 'updated') await record({ type: 'User.Data.Updated', entity, data: user })
}
