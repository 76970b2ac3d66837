import { z } from 'zod'
import { toSeconds } from '../../../platform/clock.ts'
import { id, jsonObject, timestamp } from '../../base/schemas.ts'
import type { GrantRow, UserSessionRow } from './user-session-store.ts'

/** In seconds, like the claims of tokens. Existing clients read them so within `payload`. */
const seconds = z.int()

/** How the person signed in. */
const lastSubmission = z.object({
  interactionEvent: z.enum(['SignIn', 'Register', 'ForgotPassword']),
  userId: id,
  verificationRecords: z.array(jsonObject),
  signInContext: z.record(z.string(), z.string()).optional(),
})

/** A browser in which a person has signed in. `clientId`: for which application that was first. */
export const userSession = z.object({
  payload: z.object({
    exp: seconds,
    iat: seconds,
    jti: id,
    /** What the path of the session says. */
    uid: id,
    kind: z.literal('Session'),
    /** When the person was authenticated last. */
    loginTs: seconds,
    accountId: id,
    amr: z.array(z.string()),
    acr: z.string(),
    /** The newest authorization of each application. `persistsLogout`: it has offline access. */
    authorizations: z.record(id, z.object({ sid: id, grantId: id, persistsLogout: z.boolean() })),
  }),
  lastSubmission,
  clientId: id.nullable(),
  accountId: id,
  /** Its absolute end. */
  expiresAt: timestamp,
  /** To within a minute. */
  lastActiveAt: timestamp,
  lastAddress: z.string(),
  userAgent: z.string().nullable(),
})
export type UserSession = z.output<typeof userSession>

export const userSessions = z.object({ sessions: z.array(userSession) })

/** What one application may do for a person since one sign-in: its id is the claim `sid` of the tokens. */
export const userGrant = z.object({
  id,
  payload: z.object({
    exp: seconds,
    iat: seconds,
    jti: id,
    kind: z.literal('Grant'),
    clientId: id,
    accountId: id,
    /** Space-separated. */
    scope: z.string(),
    sessionUid: id,
  }),
  expiresAt: timestamp,
  application: z.object({ id, name: z.string() }),
})
export type UserGrant = z.output<typeof userGrant>

export const userGrants = z.object({ grants: z.array(userGrant) })

export const grantQuery = z.object({ appType: z.enum(['firstParty', 'thirdParty']).optional() })

/** Existing clients say which grants end too. Here all of the session do. */
export const endSessionQuery = z.object({ revokeGrantsTarget: z.enum(['all', 'firstParty']).optional() })

export const toUserSession = (row: UserSessionRow): UserSession => ({
  payload: {
    exp: toSeconds(row.expiresAt),
    iat: toSeconds(row.createdAt),
    jti: row.id,
    uid: row.id,
    kind: 'Session',
    loginTs: toSeconds(row.authenticatedAt),
    accountId: row.userId,
    amr: row.amr,
    acr: row.acr,
    authorizations: row.authorizations,
  },
  lastSubmission: lastSubmission.parse(row.interaction),
  clientId: row.clientId,
  accountId: row.userId,
  expiresAt: row.expiresAt.getTime(),
  lastActiveAt: row.lastSeenAt.getTime(),
  lastAddress: row.lastAddress,
  userAgent: row.userAgent,
})

export const toUserGrant = (row: GrantRow): UserGrant => ({
  id: row.id,
  payload: {
    exp: toSeconds(row.expiresAt),
    iat: toSeconds(row.createdAt),
    jti: row.id,
    kind: 'Grant',
    clientId: row.clientId,
    accountId: row.userId,
    scope: row.scopes.join(' '),
    sessionUid: row.sessionId,
  },
  expiresAt: row.expiresAt.getTime(),
  application: { id: row.clientId, name: row.clientName },
})
