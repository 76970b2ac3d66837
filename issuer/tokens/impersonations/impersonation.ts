import type { EventRequest, NewEvent } from '../../../events/outbox.ts'
import type { actorVias } from '../../../events/records.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import type { PolicyAnswer } from './history.ts'

export type ActorVia = (typeof actorVias)[number]

/** Who acted as whom: opened by every exchange of a subject token; its id is the claim `sid` of the token. */
export interface ImpersonationSession {
  id: string
  subjectId: string
  actorId: string | undefined
  actorVia: ActorVia | undefined
  /** The authorization or the impersonation that the actor's token came of. */
  actorSid: string | undefined
  /** It ends with that, or with the session of it. */
  endsWithActor: boolean
  /** Who exchanged the subject token. */
  clientId: string
  /** Who had minted it. */
  creatorId: string
  resource: string | undefined
  /** Granted. */
  scopes: readonly string[]
  context: Record<string, unknown>
  reason: string | undefined
  ticket: string | undefined
  /** `read`: its token only reads. */
  access: 'read' | undefined
  /** The request that the subject approved. */
  approvalId: string | undefined
  /** `jti` of the token, or a stand-in for an opaque one. */
  tokenId: string
  /** What the policy said at the exchange. */
  policy: PolicyAnswer
  startedAt: Date
  expiresAt: Date
}

/** A session that has just begun, as events show it: times in ms, null for what is not there. */
const startedSession = (session: ImpersonationSession) => ({
  id: session.id,
  subjectId: session.subjectId,
  actorId: session.actorId ?? null,
  actorVia: session.actorVia ?? null,
  actorSid: session.actorSid ?? null,
  clientId: session.clientId,
  creatorId: session.creatorId,
  resource: session.resource ?? null,
  scopes: session.scopes,
  context: session.context,
  reason: session.reason ?? null,
  ticket: session.ticket ?? null,
  access: session.access ?? null,
  approvalId: session.approvalId ?? null,
  startedAt: session.startedAt.getTime(),
  expiresAt: session.expiresAt.getTime(),
  endedAt: null,
  endedBy: null,
})

/** `Impersonation.Started`, caused by a token request. */
export const sessionStarted = (session: ImpersonationSession, origin: RequestOrigin): NewEvent => ({
  type: 'Impersonation.Started',
  entity: { kind: 'impersonation', id: session.id },
  data: startedSession(session),
  request: tokenEndpointRequest(origin),
})

const tokenEndpointRequest = ({ ip, userAgent }: RequestOrigin): EventRequest => ({
  ip,
  userAgent,
  method: 'POST',
  path: '/oidc/token',
  matchedRoute: '/oidc/token',
  params: {},
  status: 200,
})
