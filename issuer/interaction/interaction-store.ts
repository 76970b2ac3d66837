import { z } from 'zod'
import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { type AuditEntry, logPayload } from '../base/audit/log-store.ts'
import { accountClient, accountClientId } from './account-client.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import {
  type AuthorizationClientRow,
  authorizationClientColumns,
  toAuthorizationClient,
} from './authorization-client-store.ts'
import { type AuthorizationRequest, authorizationRequest } from './authorization-request.ts'
import {
  type InteractionEventName,
  type InteractionState,
  interactionEvents,
  interactionState,
  type Staged,
  staged,
} from './interaction-state.ts'
import { personFacts, type StoredPersonFacts, toPersonFacts } from './person-facts-store.ts'
import { type Proof, proofData, proofKindNames, proofPurposes } from './proofs.ts'

/** An authorization request that waits for a person. */
export interface Interaction {
  id: string
  /** Digest of the cookie of the one browser that it belongs to. */
  browser: Buffer
  client: AuthorizationClient
  request: AuthorizationRequest
  event: InteractionEventName
  state: InteractionState
  staged: Staged
  /** Who it is, as far as it is proven. */
  person: StoredPersonFacts | undefined
  /** Verified, not used yet, of that person or of nobody. */
  proofs: readonly Proof[]
  isFinished: boolean
  /** Neither finished nor expired. */
  isOpen: boolean
  /** Where it led, sealed; for some seconds. */
  redirect: Buffer | null
}

/** How long a person may take. */
const life = `interval '1 hour'`
/** How long the same redirect is answered again. */
const redirectLife = `interval '10 seconds'`

const logged = (from: string, [id, entry]: readonly [id: string, entry: string]) =>
  `INSERT INTO logs (id, key, result, application_id, user_id, payload)
     SELECT ${id}, e.key, e.result, e."applicationId", e."userId", ${entry}::jsonb
     FROM ${from}, jsonb_to_record(${entry}::jsonb) AS e (key text, result text, "applicationId" text, "userId" text)`

// The cookie of a browser is taken up only where it is known: one that somebody planted is replaced.
const insert = statement(
  'interaction-insert',
  `WITH open AS (
     SELECT count(*) AS total FROM (
       SELECT FROM interactions WHERE address = $4 AND finished_at IS NULL AND expires_at > now() LIMIT $7) AS waiting),
   made AS (
     INSERT INTO interactions (id, browser, address, client_id, request, event, expires_at)
     SELECT $1, CASE WHEN $2::bytea IS NULL THEN $3
         WHEN EXISTS (SELECT FROM interactions WHERE browser = $2 AND expires_at > now()) THEN $2
         WHEN EXISTS (SELECT FROM pushed_requests WHERE browser = $2 AND expires_at > now()) THEN $2 ELSE $3 END,
       $4, $5, $6::jsonb, $10, now() + ${life}
     FROM open WHERE $7 = 0 OR open.total < $7
     RETURNING browser = $3 AS is_new),
   log AS (${logged('made', ['$8', '$9'])})
   SELECT is_new AS "isNewBrowser" FROM made`,
)

export interface NewInteraction {
  id: string
  request: AuthorizationRequest
  /** What it begins with. */
  event: InteractionEventName
  /** Digests of the cookie that the browser has, if any, and of the one that it gets if that is not known. */
  browser: { known: Buffer | undefined; fresh: Buffer }
  /** See `addressKey`. */
  address: string
  /** Open interactions of one address; 0: any number. */
  limit: number
  audit: AuditEntry
}

/** Undefined when the address has too many. Else whether the browser gets the fresh cookie. */
export const insertInteraction = async (
  query: Query,
  { id, request, event, browser, address, limit, audit }: NewInteraction,
): Promise<{ isNewBrowser: boolean } | undefined> => {
  const values = [
    id,
    browser.known ?? null,
    browser.fresh,
    address,
    request.clientId === accountClientId ? null : request.clientId,
    JSON.stringify(request),
    limit,
    newId(),
    JSON.stringify(logPayload(audit)),
    event,
  ]
  return (await query<{ isNewBrowser: boolean }>(insert, values))[0]
}

// One value: of a row, the driver makes its columns anew each time, which takes longer than the rest of the statement.
const select = statement(
  'interaction-find',
  `SELECT row_to_json(found) AS found FROM (
   SELECT encode(i.browser, 'base64') AS browser, i.client_id AS "clientId", i.request, i.event, i.state, i.staged,
     i.finished_at IS NOT NULL AS "isFinished",
     i.finished_at IS NULL AND i.expires_at > now() AS "isOpen",
     CASE WHEN i.finished_at > now() - ${redirectLife} THEN encode(i.redirect, 'base64') END AS redirect,
     (SELECT json_agg(json_build_object('id', p.id, 'kind', p.kind, 'purpose', p.purpose, 'userId', p.user_id,
        'data', p.data) ORDER BY p.id)
      FROM proofs p
      WHERE p.interaction_id = i.id AND p.user_id IS NOT DISTINCT FROM i.user_id AND p.verified_at IS NOT NULL
        AND p.consumed_at IS NULL AND p.expires_at > now()) AS proofs,
     ${personFacts('i.user_id')} AS person, ${authorizationClientColumns}
   FROM interactions i LEFT JOIN applications a ON a.id = i.client_id WHERE i.id = $1) AS found`,
)

interface Row extends AuthorizationClientRow {
  browser: string
  /** Null: of the account pages. One that was deleted takes its interactions along. */
  clientId: string | null
  request: unknown
  event: string
  state: unknown
  staged: unknown
  person: unknown
  isFinished: boolean
  isOpen: boolean
  redirect: string | null
  proofs: unknown
}

const storedProofs = z
  .array(
    z.object({
      id: z.string(),
      kind: z.enum(proofKindNames),
      purpose: z.enum(proofPurposes),
      userId: z.string().nullable(),
      data: proofData,
    }),
  )
  .nullable()

export const findInteraction = async (transaction: Transaction, id: string): Promise<Interaction | undefined> => {
  const [answer] = await queryOf(transaction)<{ found: Row }>(select, [id])
  if (!answer) return undefined
  const { found: row } = answer
  const { clientId, isFinished, isOpen, redirect } = row
  const request = authorizationRequest.parse(row.request)
  return {
    id,
    browser: Buffer.from(row.browser, 'base64'),
    client: clientId === null ? accountClient(request.redirectUri) : toAuthorizationClient(clientId, row),
    request,
    event: interactionEvents.find((name) => name === row.event) ?? 'SignIn',
    state: interactionState.parse(row.state),
    staged: staged.parse(row.staged),
    person: toPersonFacts(row.person),
    proofs: storedProofs.parse(row.proofs) ?? [],
    isFinished,
    isOpen,
    redirect: redirect === null ? null : Buffer.from(redirect, 'base64'),
  }
}

const newest = statement(
  'interaction-newest',
  `SELECT id FROM interactions
   WHERE browser = $1 AND ($2::text IS NULL OR coalesce(client_id, '${accountClientId}') = $2)
     AND CASE WHEN finished_at IS NULL THEN expires_at > now() ELSE finished_at > now() - ${redirectLife} END
   ORDER BY created_at DESC, id DESC LIMIT 1`,
)

/** The newest of a browser that somebody can still do something with; `clientId`: of this application alone. */
export const findNewestInteraction = async (
  query: Query,
  browser: Buffer,
  clientId: string | undefined,
): Promise<string | undefined> => (await query<{ id: string }>(newest, [browser, clientId ?? null]))[0]?.id

// Whoever deletes the client or the person locks that first, and this row after it: so does this. The person is going
// to be changed (`notePersonSignsIn`): a weaker lock now would have to grow, and two that grow wait for each other.
const lock = statement(
  'interaction-lock',
  `WITH client AS MATERIALIZED (
     SELECT id FROM applications WHERE id = (SELECT client_id FROM interactions WHERE id = $1) FOR KEY SHARE),
   person AS MATERIALIZED (
     SELECT id FROM users WHERE id = (SELECT user_id FROM interactions WHERE id = $1) FOR NO KEY UPDATE)
   SELECT id FROM interactions
   WHERE id = $1 AND (SELECT count(*) FROM client) + (SELECT count(*) FROM person) >= 0 FOR UPDATE`,
)

/** As it is when everybody who held it is done; it stays so until the transaction ends. */
export const lockInteraction = async (trx: Query, id: string): Promise<Interaction | undefined> => {
  // Two statements: the second, done after the first, sees what others committed while that waited.
  const [, interaction] = await Promise.all([trx(lock, [id]), findInteraction(trx, id)])
  return interaction
}

/** An SQL condition. */
export const isOpen = 'finished_at IS NULL AND expires_at > now()'

const end = statement('interaction-end', `UPDATE interactions SET expires_at = now() WHERE id = $1 AND ${isOpen}`)

/** It leads nowhere any more. */
export const endInteraction = async (query: Query, id: string): Promise<void> => {
  await query(end, [id])
}

const status = statement('interaction-is-open', `SELECT id FROM interactions WHERE id = $1 AND ${isOpen}`)

export const isInteractionOpen = async (query: Query, id: string): Promise<boolean> =>
  (await query(status, [id])).length > 0

const finish = statement(
  'interaction-finish',
  `WITH finished AS (
     UPDATE interactions SET finished_at = now(), redirect = $2, state = state || $3::jsonb
     WHERE id = $1 AND ${isOpen} RETURNING id),
   consumed AS (
     UPDATE proofs SET consumed_at = now() WHERE interaction_id = (SELECT id FROM finished) AND consumed_at IS NULL),
   log AS (${logged('finished', ['$4', '$5'])})
   SELECT id FROM finished`,
)

/** Uses it up, with its proofs. False: somebody else has. */
export const finishInteraction = async (
  trx: Transaction,
  id: string,
  { redirect, decision, audit }: { redirect: Buffer; decision: InteractionState; audit: AuditEntry },
): Promise<boolean> => {
  const values = [id, redirect, JSON.stringify(decision), newId(), JSON.stringify(logPayload(audit))]
  return (await queryOf(trx)(finish, values)).length > 0
}

const erase = statement(
  'interaction-erase-redirects',
  `UPDATE interactions SET redirect = NULL WHERE redirect IS NOT NULL AND finished_at < now() - ${redirectLife}`,
)

/** Erases the sealed redirects whose time is over. */
export const eraseRedirects = async (query: Query): Promise<void> => {
  await query(erase, [])
}
