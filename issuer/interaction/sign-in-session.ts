import type { Query } from '../../platform/database/database.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import type { Cookies } from '../base/cookies.ts'
import { type Session, sessionDefaults } from '../tokens/sessions/session.ts'
import { type FoundSession, rotateSession, type SignedIn, touchSession } from '../tokens/sessions/session-store.ts'
import type { InteractionEventName } from './interaction-state.ts'
import { type Proof, recordTypeOf } from './proofs.ts'
import type { Visitor } from './visitor.ts'

/** In seconds. */
export interface SessionLimits {
  ttl: number
  idleTtl: number
}

const secondsUntil = (date: Date): number => Math.max(1, Math.floor((date.getTime() - Date.now()) / 1_000))

/** Without `isPersistent` it ends with the browser. */
const sessionCookie = (cookies: Cookies, value: string, isPersistent: boolean, seconds: number): string =>
  cookies.set('session', value, isPersistent ? { maxAge: seconds } : {})

/** What is due when a browser shows its session: the new cookie of the day, if any. */
export const keepSessionFresh = async (
  query: Query,
  cookies: Cookies,
  session: FoundSession,
  { session: from, origin }: Visitor,
): Promise<string[]> => {
  if (session.isTouchDue) await touchSession(query, { id: session.id, address: origin.ip })
  if (!session.isRotationDue || from === undefined) return []
  const to = randomToken()
  if (!(await rotateSession(query, { id: session.id, from, to }))) return []
  return [sessionCookie(cookies, to, session.isPersistent, secondsUntil(session.expiresAt))]
}

/** The session of somebody who has just proven who they are, and the cookie of it, always a new one. */
export const prepareSession = (
  cookies: Cookies,
  {
    event,
    userId,
    proofs,
    authentication,
    keep,
    limits,
    visitor,
  }: {
    event: InteractionEventName
    userId: string
    proofs: readonly Proof[]
    authentication: Pick<Session, 'amr' | 'acr'>
    keep: boolean
    limits: SessionLimits
    visitor: Visitor
  },
): { session: SignedIn; setCookie: string } => {
  const cookie = randomToken()
  const ttl = keep ? limits.ttl : Math.min(limits.ttl, sessionDefaults.brief)
  const session = {
    id: newId(),
    cookie,
    userId,
    isPersistent: keep,
    ...authentication,
    interaction: {
      interactionEvent: event,
      userId,
      verificationRecords: proofs.map(({ id, kind, data }) => ({
        id,
        type: recordTypeOf({ kind, data }),
        ...(data.identifier && { identifier: data.identifier }),
        verified: true,
      })),
      signInContext: visitor.signInContext,
    },
    address: visitor.origin.ip,
    userAgent: visitor.origin.userAgent,
    idleTtl: Math.min(limits.idleTtl, ttl),
    ttl,
  }
  return { session, setCookie: sessionCookie(cookies, cookie, keep, ttl) }
}
