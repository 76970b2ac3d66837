import type { Query } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import type { SignInDecision } from '../../policies/sign-in.ts'
import type { Cookies } from '../base/cookies.ts'
import { addressNotices, type OwnerNotice } from '../base/owner-notices.ts'
import type { Recording } from '../base/recording.ts'
import { toUser, type UserRow } from '../directory/users/user.ts'
import { endAllOfUser, endSessionHere } from '../tokens/authorizations/end.ts'
import { forgetDevices } from '../tokens/sessions/known-device-store.ts'
import { acrs } from '../tokens/sessions/session.ts'
import { insertSession, renewSession } from '../tokens/sessions/session-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { Became, BecomePerson } from './become-person.ts'
import { deviceLabel } from './device-label.ts'
import type { Interaction } from './interaction-store.ts'
import type { Notices } from './notices.ts'
import { keepDevice, notePersonSignsIn } from './person-store.ts'
import { authenticating, authenticationBy, identifies, type Proof } from './proofs.ts'
import type { InteractionRecording } from './recording.ts'
import { prepareSession, type SessionLimits } from './sign-in-session.ts'
import type { Situation } from './situation.ts'
import { hasAddresses, hasFactorsAndIdentities } from './still-true.ts'
import type { Visitor } from './visitor.ts'

export interface SignedIn {
  session: { id: string; userId: string }
  setCookies: string[]
  isPasswordNew: boolean
}

export interface SigningIn {
  recording: InteractionRecording
  interaction: Interaction
  situation: Situation
  visitor: Visitor
  limits: SessionLimits
}

/**
 * Makes of whom the interaction is about what it was staged for, and signs them in: user, factors, session, known
 * browser, notices and events. Undefined when what was proven is true no longer. `complete` writes what follows from
 * the session, and is sent with it; `endAfterSignIn` has to come after both.
 */
export type SignInPerson = <Completed>(
  signingIn: SigningIn,
  complete: (signedIn: SignedIn) => Promise<Completed>,
) => Promise<{ signedIn: SignedIn; completed: Completed } | undefined>

/** As long as the browser keeps it, in seconds. */
const deviceCookieLife = 400 * 86_400

export const createSignInPerson =
  ({
    cookies,
    becomePerson,
    notices,
  }: {
    cookies: Cookies
    becomePerson: BecomePerson
    notices: Notices
  }): SignInPerson =>
  async ({ recording, interaction, situation, visitor, limits }, complete) => {
    const { trx } = recording
    const { proofs, state, session: current, decision } = situation
    const known = proofs.find(identifies)?.userId ?? undefined
    // Held before anything of it changes. Somebody new has no row to hold.
    const before = known === undefined ? undefined : await stillProven(trx, known, situation)
    if (known !== undefined && !before) return undefined
    const became = await becomePerson(trx, { interaction, proofs, userId: known, recording })
    const { userId, isPasswordNew } = became
    const user = became.change === undefined ? before : await notePersonSignsIn(trx, userId, undefined)
    if (!user) return undefined
    const { session: prepared, setCookie } = prepareSession(cookies, {
      event: interaction.event,
      userId,
      proofs: proofs.filter(({ purpose }) => purpose !== 'bind'),
      authentication: authenticationOf(interaction, proofs),
      keep: state.keep === true,
      limits: shortened(limits, decision?.session),
      visitor,
    })
    // That of the browser goes on when it is the same person's.
    const renewed = current?.userId === userId ? { ...prepared, id: current.id } : undefined
    const isRenewed = renewed !== undefined && (await renewSession(trx, renewed)) !== undefined
    const session = isRenewed ? renewed : prepared
    const device = randomToken()
    const signedIn = {
      session: { id: session.id, userId },
      setCookies: [setCookie, cookies.set('device', device, { maxAge: deviceCookieLife })],
      isPasswordNew,
    }
    // None needs the answer of another, so they are sent together, in this order.
    const [, , isDeviceKnown, , completed] = await Promise.all([
      !isRenewed && insertSession(trx, session),
      isPasswordNew && forgetDevices(trx, userId),
      keepDevice(trx, {
        from: visitor.device === undefined ? undefined : tokenDigest('device', visitor.device),
        to: tokenDigest('device', device),
        userId,
      }),
      recordSignIn(recording, interaction, user, became),
      complete(signedIn),
    ])
    // Whoever has just come knows of it all.
    if (before) {
      const newDevice = isDeviceKnown ? undefined : deviceLabel(visitor.origin.userAgent)
      // An address that came just now is told nothing that another one should hear.
      const owner = before.primary_email === null && before.primary_phone === null ? user : before
      for (const notice of [...noticesOf(became, newDevice), ...addressNotices(before, user)]) {
        await notices.notify(trx, interaction, visitor, owner, notice)
      }
    }
    return { signedIn, completed }
  }

/** The person, held. Undefined when they may not sign in, or what was proven is true no longer. */
const stillProven = async (
  trx: Query,
  userId: string,
  { proofs, settings }: Pick<Situation, 'proofs' | 'settings'>,
): Promise<UserRow | undefined> => {
  const mark = proofs.find(({ data }) => data.digest !== undefined)?.data.digest
  const shown = authenticating(proofs)
  // Sent together, in this order: the second is asked of a person who is held.
  const [person, hasOthers] = await Promise.all([
    notePersonSignsIn(trx, userId, mark),
    hasFactorsAndIdentities(trx, userId, shown, settings),
  ])
  return person && hasOthers && hasAddresses(person, shown) ? person : undefined
}

/** Who registers has proven no more than what the account begins with. */
const authenticationOf = ({ event, staged: { password } }: Interaction, proofs: readonly Proof[]) => {
  if (event !== 'Register') return authenticationBy(authenticating(proofs))
  const registered = [...proofs.filter(({ purpose }) => purpose === 'register'), ...(password ? [byPassword] : [])]
  const amr = registered.flatMap((proof) => authenticationBy([proof]).amr)
  return { amr: [...new Set(amr)], acr: acrs[0] }
}

const byPassword = { kind: 'password' } as const

/** The rules may end a session earlier than the settings. */
const shortened = (
  { ttl, idleTtl }: SessionLimits,
  { absolute = ttl, idle = idleTtl }: SignInDecision['session'] = {},
): SessionLimits => ({ ttl: Math.min(ttl, absolute), idleTtl: Math.min(idleTtl, idle) })

const noticesOf = ({ isPasswordNew, factors, linked }: Became, newDevice: string | undefined): OwnerNotice[] => [
  ...(newDevice === undefined ? [] : [{ type: 'NewDevice', device: newDevice } as const]),
  ...(isPasswordNew ? [{ type: 'PasswordChanged' } as const] : []),
  ...factors.map((factor) => ({ type: 'FactorAdded', factor }) as const),
  ...linked.map((provider) => ({ type: 'IdentityLinked', provider }) as const),
]

const recordSignIn = async ({ record }: Recording, { event }: Interaction, row: UserRow, { change }: Became) => {
  const user = toUser(row)
  const entity = { kind: 'user', id: user.id } as const
  const type = event === 'Register' ? 'PostRegister' : 'PostSignIn'
  await record({ type, entity, data: user, extras: { userId: user.id, user } })
  if (change === 'updated') await record({ type: 'User.Data.Updated', entity, data: user })
}

/**
 * What ends with a sign-in: what an old password opened, and the session of somebody else at this browser. The last
 * thing in the transaction (see `revoke`).
 */
export const endAfterSignIn = async (
  { session: { id, userId }, isPasswordNew }: SignedIn,
  { recording, interaction, situation }: SigningIn,
): Promise<void> => {
  const { session: other } = situation
  if (isPasswordNew) {
    await endAllOfUser(recording, { userId, reason: 'password_changed', endedBy: userId, exceptSessionId: id })
  }
  if (other && other.userId !== userId) {
    const { id: clientId } = interaction.client
    await endSessionHere(recording, { sessionId: other.id, clientId, reason: 'signed_in_again', endedBy: userId })
  }
}
