import type { Query } from '../../../../platform/database/database.ts'
import { bytea, lookUp, type SharedStatement } from '../../../../platform/database/shared-statement.ts'
import { onlyRow } from '../../../base/only-row.ts'
import type { Act } from '../../../tokens/access-token.ts'
import type { Confirmation } from '../../../tokens/dpop/confirmation.ts'
import { cnfOf } from '../../../tokens/dpop/confirmation-store.ts'
import type { Approval } from '../../../tokens/impersonation-requests/approval.ts'
import type { FoundRevocation } from '../../../tokens/revocations/is-revoked.ts'
import { revocationsOf } from '../../../tokens/revocations/revocation-store.ts'
import { managementScopesOf } from '../../../tokens/subject-tokens/management-scopes-store.ts'
import { oneHolds, resourceAsked } from '../../clients/token-request-store.ts'
import type { PresentedActor } from './actor.ts'
import { revocableValues } from './revoked.ts'
import type { PresentedSubject } from './subject.ts'

/** What is asked of the database for one exchange: digests find stored tokens, the rest comes from verified JWTs. */
export interface ExchangeQuestion {
  subject: PresentedSubject
  actor: PresentedActor | undefined
  resource: string | undefined
  useDefaultResource: boolean
  scopes: readonly string[]
  /** Also read what only a policy looks at. */
  forPolicy: boolean
}

/** Members of tokens and people that were not presented or not found are null. */
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
  approval: Approval | null

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
  subjectManagementScopes: string[] | null

  opaqueActor:
    | (OpaqueTokenFacts & { scope: string; expiresAt: number; access: 'read' | null; signIn: SignInFacts | null })
    | null
  actorSessionEnded: boolean | null
  actorId: string | null
  actorSuspended: boolean
  actorRoles: string[] | null
  /** Ids of those the actor is a member of. */
  actorOrganizations: string[] | null

  /** Those that may concern a presented token or somebody it speaks for. */
  revocations: FoundRevocation[] | null

  /** Of the scopes asked for, what the subject's roles hold, of the Management API nothing; space-separated. */
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
  cnf: Confirmation | null
}

/** How and when, in seconds, somebody signed in. */
export interface SignInFacts {
  acr: string
  authTime: number
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

/**
 * The kinds that decide what has to be looked up. A statement for each: what is not presented costs PostgreSQL nothing.
 */
interface Kinds {
  subject: PresentedSubject['kind']
  actor: PresentedActor['kind'] | 'none'
  forPolicy: boolean
}

const roleNames = (user: string) =>
  `ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = ${user} ORDER BY r.name)`

const organizationIds = (user: string) =>
  `ARRAY(SELECT organization_id FROM organization_users WHERE user_id = ${user} ORDER BY organization_id)`

const opaqueToken = (token: string, more: string) =>
  `json_build_object('expired', ${token}.expires_at <= now() OR ${token}.revoked_at IS NOT NULL,
     'sessionId', ${token}.session_id, 'act', ${token}.act, 'clientId', ${token}.client_id,
     'issuedAt', extract(epoch FROM ${token}.created_at), 'cnf', ${cnfOf(`${token}.jkt`)},
     'fromPersonalAccessToken', ${token}.personal_access_token IS NOT NULL, ${more})`

/**
 * A presented token in SQL: `from` its row, `userId` its user, `columns` the facts read, `revocable` the values a
 * revocation may name.
 */
interface TokenSql {
  from?: string
  userId: string
  columns?: string
  revocable?: string
}

const subjectTokens: Record<Kinds['subject'], TokenSql> = {
  'subject-token': {
    from: '(SELECT * FROM subject_tokens WHERE digest = asked.subject_digest) t',
    userId: 't.user_id',
    columns: `t.creator_id AS "creatorId", t.consumed_at IS NOT NULL AS consumed, t.expires_at <= now() AS expired, t.context,
      t.client_id AS "boundClientId", t.resource AS "boundResource", t.scopes AS "boundScopes", t.actor_id AS "boundActorId",
      t.reason, t.ticket, t.approval`,
  },
  'personal-access-token': {
    from: '(SELECT * FROM personal_access_tokens WHERE digest = asked.subject_digest) t',
    userId: 't.user_id',
    columns: `CASE WHEN t.digest IS NOT NULL THEN json_build_object('name', t.name, 'scopes', t.scopes,
      'expired', COALESCE(t.expires_at <= now(), false), 'expiresAt', floor(extract(epoch FROM t.expires_at)),
      'useNoted', COALESCE(t.last_used_at > now() - interval '1 minute', false)) END AS "personalAccessToken"`,
  },
  'opaque-token': {
    from: '(SELECT * FROM opaque_tokens WHERE digest = asked.subject_digest) t',
    userId: 't.user_id',
    columns: `CASE WHEN t.digest IS NOT NULL THEN ${opaqueToken('t', `'expiresAt', floor(extract(epoch FROM t.expires_at))`)} END AS "opaqueSubject",
      (SELECT is_third_party FROM applications WHERE id = t.client_id) AS "subjectClientIsThirdParty"`,
    revocable: 'ARRAY[u.id, t.client_id, t.session_id]::text[]',
  },
  jwt: {
    userId: 'asked.subject_user_id',
    columns: `(SELECT is_third_party FROM applications WHERE id = asked.subject_client_id) AS "subjectClientIsThirdParty"`,
    revocable: 'ARRAY[u.id]::text[]',
  },
}

const actorTokens: Record<Exclude<Kinds['actor'], 'none'>, TokenSql> = {
  'opaque-token': {
    from: '(SELECT * FROM opaque_tokens WHERE digest = asked.actor_digest) oa',
    userId: 'oa.user_id',
    // What came of an exchange says no more how the person signed in.
    columns: `CASE WHEN oa.digest IS NOT NULL THEN ${opaqueToken(
      'oa',
      `'scope', oa.scope, 'expiresAt', floor(extract(epoch FROM oa.expires_at)), 'access', oa.access, 'signIn', (
        SELECT json_build_object('acr', s.acr, 'authTime', floor(extract(epoch FROM s.authenticated_at)))
        FROM authorizations s WHERE s.id = oa.session_id AND NOT oa.is_exchanged)`,
    )} END AS "opaqueActor",
      (SELECT ended_at IS NOT NULL FROM impersonation_sessions WHERE id = oa.session_id) AS "actorSessionEnded"`,
    // The `act` of an actor token goes on in the new one.
    revocable: `ARRAY[a.id, oa.client_id, oa.session_id]::text[]
      || ARRAY(SELECT jsonb_path_query(oa.act, 'strict $.**.sub') #>> '{}')`,
  },
  jwt: {
    userId: 'asked.actor_user_id',
    columns: `(SELECT ended_at IS NOT NULL FROM impersonation_sessions WHERE id = asked.actor_session_id) AS "actorSessionEnded"`,
    revocable: 'ARRAY[a.id]::text[]',
  },
}

const factsSql = (kinds: Kinds): string => {
  const subject = subjectTokens[kinds.subject]
  const actor = kinds.actor === 'none' ? undefined : actorTokens[kinds.actor]
  const revocable = [subject.revocable, actor?.revocable].filter((sql) => sql !== undefined)
  // What JWTs carry is known before anything is read.
  const jwt = kinds.subject === 'jwt' || kinds.actor === 'jwt' ? ['asked.revocable'] : []
  const columns = [
    subject.columns,
    `u.id AS "subjectId", COALESCE(u.is_suspended, false) AS "subjectSuspended"`,
    kinds.forPolicy &&
      `${roleNames('u.id')} AS "subjectRoles", u.custom_data AS "subjectCustomData",
       ${organizationIds('u.id')} AS "subjectOrganizations", ${managementScopesOf('u.id')} AS "subjectManagementScopes"`,
    actor?.columns,
    actor && `a.id AS "actorId", COALESCE(a.is_suspended, false) AS "actorSuspended"`,
    actor &&
      kinds.forPolicy &&
      `${roleNames('a.id')} AS "actorRoles", ${organizationIds('a.id')} AS "actorOrganizations"`,
    revocable.length > 0 && `${revocationsOf([...jwt, ...revocable].join(' || '))} AS revocations`,
    `(SELECT string_agg(s.name, ' ') FROM scopes s JOIN resources r ON r.id = s.resource_id
      WHERE r.id = (${resourceAsked}) AND NOT r.is_management AND s.name = ANY (asked.scopes) AND
        ${oneHolds('SELECT role_id FROM user_roles WHERE user_id = u.id', 's.id')}) AS granted`,
  ]
  // One column, because the driver takes longer to read two dozen than to parse their JSON.
  return `SELECT to_json(found) AS facts FROM (SELECT ${columns.filter((sql) => sql).join(',\n')}
   FROM (SELECT) once
   ${[subject.from, actor?.from].map((from) => (from ? `LEFT JOIN ${from} ON true` : '')).join('\n')}
   LEFT JOIN users u ON u.id = ${subject.userId}
   ${actor ? `LEFT JOIN users a ON a.id = ${actor.userId}` : ''}) found`
}

/** Everything that such a statement may ask with. */
const columnTypes = {
  subject_digest: 'bytea',
  subject_user_id: 'text',
  subject_client_id: 'text',
  actor_digest: 'bytea',
  actor_user_id: 'text',
  actor_session_id: 'text',
  revocable: 'text[]',
  resource: 'text',
  use_default_resource: 'boolean',
  scopes: 'text[]',
} as const

const statements = new Map<string, SharedStatement>()

const factsStatement = (kinds: Kinds): SharedStatement => {
  const name = `exchange-facts-${kinds.subject}-${kinds.actor}${kinds.forPolicy ? '-policy' : ''}`
  const known = statements.get(name)
  if (known) return known
  const text = factsSql(kinds)
  const columns = Object.fromEntries(Object.entries(columnTypes).filter(([column]) => text.includes(`asked.${column}`)))
  const made = lookUp(name, columns, text)
  statements.set(name, made)
  return made
}

/** What no statement for other kinds of tokens tells. */
const nothing: ExchangeFacts = {
  creatorId: null,
  consumed: false,
  expired: false,
  context: {},
  boundClientId: null,
  boundResource: null,
  boundScopes: null,
  boundActorId: null,
  reason: null,
  ticket: null,
  approval: null,
  personalAccessToken: null,
  opaqueSubject: null,
  subjectClientIsThirdParty: null,
  subjectId: null,
  subjectSuspended: false,
  subjectRoles: null,
  subjectOrganizations: null,
  subjectCustomData: null,
  subjectManagementScopes: null,
  opaqueActor: null,
  actorSessionEnded: null,
  actorId: null,
  actorSuspended: false,
  actorRoles: null,
  actorOrganizations: null,
  revocations: null,
  granted: null,
}

/** One round trip for all that the checks need. The subject is whom the token in hand names, the actor likewise. */
export const findExchangeFacts = async (query: Query, question: ExchangeQuestion): Promise<ExchangeFacts> => {
  const { subject, actor, resource, useDefaultResource, scopes, forPolicy } = question
  const statement = factsStatement({ subject: subject.kind, actor: actor?.kind ?? 'none', forPolicy })
  const asked: Partial<Record<keyof typeof columnTypes, unknown>> = {
    ...(subject.kind === 'jwt'
      ? { subject_user_id: subject.userId, subject_client_id: subject.clientId }
      : { subject_digest: bytea(subject.digest) }),
    ...(actor?.kind === 'jwt' && { actor_user_id: actor.userId, actor_session_id: actor.sessionId }),
    ...(actor?.kind === 'opaque-token' && { actor_digest: bytea(actor.digest) }),
    revocable: revocableValues(subject, actor),
    resource,
    use_default_resource: useDefaultResource,
    scopes,
  }
  const { facts } = onlyRow(await query<{ facts: Partial<ExchangeFacts> }>(statement, [asked]))
  return { ...nothing, ...facts }
}
