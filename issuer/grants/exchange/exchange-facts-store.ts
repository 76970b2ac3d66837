import { type Query, statement } from '../../../platform/database.ts'
import { oneHolds } from '../../oauth/token-request-store.ts'
import type { FoundRevocation } from '../../revocations/concerns.ts'
import { revocationsOf } from '../../revocations/revocation-store.ts'
import type { Act } from '../../tokens/access-token.ts'
import type { PresentedActor } from './actor.ts'
import { revocableValues } from './revoked.ts'
import type { PresentedSubject } from './subject.ts'

/** What is asked of the database for one exchange; digests find stored tokens, the rest comes from verified JWTs. */
export interface ExchangeQuestion {
  subject: PresentedSubject
  actor: PresentedActor | undefined
  resourceId: string | undefined
  scopes: readonly string[]
  /** Also read what only a policy looks at. */
  forPolicy: boolean
}

/** One row; members of tokens and people that were not found are null. */
export interface ExchangeFacts {
  creatorId: string | null
  consumed: boolean
  expired: boolean
  context: Record<string, unknown>
  boundClientId: string | null
  boundResource: string | null
  boundScopes: string[] | null
  boundActorId: string | null
  reason: string | null
  ticket: string | null

  personalAccessToken: PersonalAccessTokenFacts | null
  opaqueSubject: (OpaqueTokenFacts & { expiresAt: number }) | null
  /** Whether the client that a subject access token was issued to is third-party; null when there is no such client. */
  subjectClientIsThirdParty: boolean | null

  subjectId: string | null
  subjectSuspended: boolean
  subjectRoles: string[] | null
  /** Ids of those the subject is a member of. */
  subjectOrganizations: string[] | null
  subjectCustomData: Record<string, unknown> | null

  opaqueActor: (OpaqueTokenFacts & { scope: string }) | null
  actorSessionEnded: boolean | null
  actorId: string | null
  actorSuspended: boolean
  actorRoles: string[] | null

  /** Those that may concern a presented token or somebody it speaks for. */
  revocations: FoundRevocation[] | null

  /** Of the scopes asked for, what the subject's roles hold on the resource; space-separated. */
  granted: string | null
}

/** A stored token. Times in seconds. */
export interface OpaqueTokenFacts {
  expired: boolean
  sessionId: string | null
  act: Act | null
  clientId: string
  issuedAt: number
  fromPersonalAccessToken: boolean
}

export interface PersonalAccessTokenFacts {
  name: string
  scopes: string[] | null
  expired: boolean
  /** In seconds. */
  expiresAt: number | null
  /** Its last use has been noted less than a minute ago. */
  useNoted: boolean
}

const roleNames = (user: string) =>
  `CASE WHEN $10::boolean THEN ARRAY(
     SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = ${user} ORDER BY r.name) END`

// What presented tokens carry that may be revoked; of JWTs it is known ($11). The `act` of an actor token goes on in the new one.
const revocable = `$11::text[] || ARRAY[people.subject_id, people.actor_id, os.client_id, os.session_id, oa.client_id, oa.session_id]::text[]
  || ARRAY(SELECT jsonb_path_query(oa.act, 'strict $.**.sub') #>> '{}')`

// One round trip for all that the checks need. The subject is whom the token in hand names, the actor likewise.
// One column, because the driver takes longer to read two dozen than to parse their JSON.
const select = statement(
  'exchange-facts',
  `WITH token AS (SELECT * FROM subject_tokens WHERE digest = $1),
     opaque_subject AS (SELECT * FROM opaque_tokens WHERE digest = $2),
     opaque_actor AS (SELECT * FROM opaque_tokens WHERE digest = $5),
     personal AS (SELECT * FROM personal_access_tokens WHERE digest = $12)
   SELECT to_json(found) AS facts FROM (SELECT t.creator_id AS "creatorId", t.consumed_at IS NOT NULL AS consumed, t.expires_at <= now() AS expired, t.context,
     t.client_id AS "boundClientId", t.resource AS "boundResource", t.scopes AS "boundScopes", t.actor_id AS "boundActorId",
     t.reason, t.ticket,
     CASE WHEN os.digest IS NOT NULL THEN json_build_object('expired', os.expires_at <= now() OR os.revoked_at IS NOT NULL,
       'expiresAt', floor(extract(epoch FROM os.expires_at)), 'sessionId', os.session_id, 'act', os.act,
       'clientId', os.client_id, 'issuedAt', extract(epoch FROM os.created_at),
       'fromPersonalAccessToken', os.personal_access_token IS NOT NULL) END AS "opaqueSubject",
     (SELECT json_build_object('name', name, 'scopes', scopes, 'expired', COALESCE(expires_at <= now(), false),
       'expiresAt', floor(extract(epoch FROM expires_at)), 'useNoted', COALESCE(last_used_at > now() - interval '1 minute', false))
      FROM personal) AS "personalAccessToken",
     (SELECT is_third_party FROM applications WHERE id = COALESCE(os.client_id, $4)) AS "subjectClientIsThirdParty",
     u.id AS "subjectId", COALESCE(u.is_suspended, false) AS "subjectSuspended",
     ${roleNames('u.id')} AS "subjectRoles",
     CASE WHEN $10::boolean THEN ARRAY(
       SELECT organization_id FROM organization_users WHERE user_id = u.id ORDER BY organization_id) END AS "subjectOrganizations",
     CASE WHEN $10::boolean THEN u.custom_data END AS "subjectCustomData",
     CASE WHEN oa.digest IS NOT NULL THEN json_build_object('expired', oa.expires_at <= now() OR oa.revoked_at IS NOT NULL,
       'scope', oa.scope, 'sessionId', oa.session_id, 'act', oa.act,
       'clientId', oa.client_id, 'issuedAt', extract(epoch FROM oa.created_at),
       'fromPersonalAccessToken', oa.personal_access_token IS NOT NULL) END AS "opaqueActor",
     (SELECT ended_at IS NOT NULL FROM impersonation_sessions WHERE id = COALESCE(oa.session_id, $7)) AS "actorSessionEnded",
     ${revocationsOf(revocable)} AS revocations,
     a.id AS "actorId", COALESCE(a.is_suspended, false) AS "actorSuspended", ${roleNames('a.id')} AS "actorRoles",
     (SELECT string_agg(s.name, ' ') FROM scopes s
      WHERE s.resource_id = $8 AND s.name = ANY ($9::text[]) AND
        ${oneHolds('SELECT role_id FROM user_roles WHERE user_id = u.id', 's.id')}) AS granted
   FROM (SELECT COALESCE((SELECT user_id FROM token), (SELECT user_id FROM opaque_subject), (SELECT user_id FROM personal), $3) AS subject_id,
           COALESCE((SELECT user_id FROM opaque_actor), $6) AS actor_id) people
   LEFT JOIN token t ON true LEFT JOIN opaque_subject os ON true LEFT JOIN opaque_actor oa ON true
   LEFT JOIN users u ON u.id = people.subject_id
   LEFT JOIN users a ON a.id = people.actor_id) found`,
)

export const findExchangeFacts = async (
  query: Query,
  { subject, actor, resourceId, scopes, forPolicy }: ExchangeQuestion,
): Promise<ExchangeFacts> => {
  const [row] = await query<{ facts: ExchangeFacts }>(select, [
    subject.kind === 'subject-token' ? subject.digest : null,
    subject.kind === 'opaque-token' ? subject.digest : null,
    subject.kind === 'jwt' ? subject.userId : null,
    subject.kind === 'jwt' ? subject.clientId : null,
    actor?.kind === 'opaque-token' ? actor.digest : null,
    actor?.kind === 'jwt' ? actor.userId : null,
    actor?.kind === 'jwt' ? actor.sessionId : null,
    resourceId,
    scopes,
    forPolicy,
    revocableValues(subject, actor),
    subject.kind === 'personal-access-token' ? subject.digest : null,
  ])
  return row!.facts
}
