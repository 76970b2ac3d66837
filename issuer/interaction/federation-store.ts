import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { accountClientId } from './account-client.ts'
import { type Interaction, isOpen } from './interaction-store.ts'
import type { FederatedIdentity, ProofData, ProofPurpose } from './proofs.ts'

/** A proof that waits for the answer of a provider, or did. */
export interface AwaitedProof {
  id: string
  purpose: ProofPurpose
  /** Of a sign-in. */
  interaction: AwaitedInteraction | undefined
  /**
   * Of an account: who looks after it, and in which session. `confirmedTo`: the person says again who they are, and
   * goes there when they have; otherwise the identity is to be linked.
   */
  account: { userId: string; holder: string; returnTo: string; confirmedTo: string | undefined } | undefined
  /** What the request to the provider left, sealed; null when there was an answer. */
  sealed: Buffer | null
}

/** As much of an interaction as the answer of a provider needs. */
export interface AwaitedInteraction extends Pick<Interaction, 'id' | 'browser' | 'event' | 'isOpen'> {
  client: Pick<Interaction['client'], 'id'>
  request: Pick<Interaction['request'], 'uiLocales'>
}

const find = statement(
  'federation-find',
  `SELECT p.id, p.purpose, i.browser, p.user_id AS "userId", p.holder,
     p.data->>'returnTo' AS "returnTo", p.data->>'confirmedTo' AS "confirmedTo",
     CASE WHEN p.verified_at IS NULL AND p.consumed_at IS NULL AND p.expires_at > now() AND p.tries = 0 THEN p.secret END
       AS sealed,
     json_build_object('id', i.id, 'event', i.event, 'isOpen', i.finished_at IS NULL AND i.expires_at > now(),
       'client', json_build_object('id', coalesce(i.client_id, '${accountClientId}')),
       'request', json_build_object('uiLocales', i.request->'uiLocales')) AS interaction
   FROM proofs p LEFT JOIN interactions i ON i.id = p.interaction_id WHERE p.id = $1 AND p.kind = 'federated'`,
)

interface AwaitedRow extends Pick<AwaitedProof, 'id' | 'purpose' | 'sealed'> {
  browser: Buffer | null
  interaction: Omit<AwaitedInteraction, 'browser'>
  userId: string | null
  holder: string | null
  returnTo: string | null
  confirmedTo: string | null
}

export const findAwaited = async (query: Query, id: string): Promise<AwaitedProof | undefined> => {
  const [row] = await query<AwaitedRow>(find, [id])
  if (!row) return undefined
  const { browser, interaction, userId, holder, returnTo, confirmedTo, ...rest } = row
  const isAccount = userId !== null && holder !== null && returnTo !== null
  return {
    ...rest,
    interaction: browser === null ? undefined : { ...interaction, browser },
    account: isAccount ? { userId, holder, returnTo, confirmedTo: confirmedTo ?? undefined } : undefined,
  }
}

// Of answers that come at once one is looked at.
const take = statement(
  'federation-take',
  `UPDATE proofs SET tries = 1 WHERE id = $1 AND kind = 'federated' AND tries = 0 AND verified_at IS NULL
     AND consumed_at IS NULL AND expires_at > now() RETURNING id`,
)

/** False: another answer came before, or the time is over. */
export const takeAwaited = async (query: Query, id: string): Promise<boolean> => (await query(take, [id])).length > 0

// Only who signs in as this person, and nobody else at the browser, gets what it binds: until then it is not seen, and
// the proof of somebody else ends it.
const offer = statement(
  'federation-offer-link',
  `WITH interaction AS (SELECT id FROM interactions WHERE id = $1 AND event = 'SignIn' AND ${isOpen} FOR UPDATE),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE interaction_id = (SELECT id FROM interaction) AND kind = 'federated' AND consumed_at IS NULL AND id <> $2::text)
   INSERT INTO proofs AS p (id, interaction_id, user_id, kind, purpose, data, verified_at, expires_at)
   SELECT $2::text, id, $3::text, 'federated', 'bind', $4::jsonb, now(), now() + interval '10 minutes' FROM interaction
   WHERE EXISTS (SELECT FROM users WHERE id = $3::text)
   ON CONFLICT (id) DO UPDATE SET user_id = $3::text, purpose = 'bind', data = excluded.data, secret = NULL,
     verified_at = now(), expires_at = excluded.expires_at
   WHERE p.interaction_id = $1 AND p.verified_at IS NULL AND p.consumed_at IS NULL
   RETURNING p.id`,
)

/** What becomes the person's when they sign in here. Undefined when the interaction is over, or is no sign-in. */
export const offerLink = async (
  transaction: Transaction,
  { interactionId, proofId = newId(), userId, data }: OfferedLink & { userId: string; data: ProofData },
): Promise<string | undefined> =>
  (await queryOf(transaction)<{ id: string }>(offer, [interactionId, proofId, userId, JSON.stringify(data)]))[0]?.id

interface OfferedLink {
  interactionId: string
  /** Of the one that waited for the answer. Default: a new one. */
  proofId?: string | undefined
}

const offered = statement(
  'federation-find-offered',
  `SELECT data->'federated'->>'email' AS email, data->'federated'->>'kind' AS kind FROM proofs
   WHERE id = $2 AND interaction_id = $1 AND kind = 'federated' AND purpose = 'bind' AND verified_at IS NOT NULL
     AND consumed_at IS NULL AND expires_at > now()`,
)

/** The address of the account that a link waits for. */
export const findOfferedLink = async (
  query: Query,
  interactionId: string,
  proofId: string,
): Promise<OfferedTo | undefined> => (await query<OfferedTo>(offered, [interactionId, proofId]))[0]

interface OfferedTo {
  email: string
  kind: FederatedIdentity['kind']
}

const beginAccount = statement(
  'federation-begin-account',
  `WITH person AS (SELECT id FROM users WHERE id = $2 FOR KEY SHARE),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE holder = $3 AND kind = 'federated' AND verified_at IS NULL AND consumed_at IS NULL)
   INSERT INTO proofs (id, holder, user_id, kind, purpose, data, secret, expires_at)
   SELECT $1, $3, id, 'federated', CASE WHEN $6::text IS NULL THEN 'bind' ELSE 'reauth' END,
     jsonb_strip_nulls(jsonb_build_object('returnTo', $4::text, 'confirmedTo', $6::text)), $5,
     now() + interval '10 minutes'
   FROM person RETURNING id`,
)

/** Begins one of whoever looks after their account; another one of the session that waits ends. */
export const beginAccountProof = async (
  query: Query,
  proof: NonNullable<AwaitedProof['account']> & { id: string; sealed: Buffer },
): Promise<boolean> => {
  const { id, userId, holder, returnTo, confirmedTo, sealed } = proof
  return (await query(beginAccount, [id, userId, holder, returnTo, sealed, confirmedTo ?? null])).length > 0
}

const keepAccount = statement(
  'federation-keep-account',
  `UPDATE proofs SET verified_at = now(), secret = NULL, data = data || $2::jsonb, expires_at = now() + interval '10 minutes'
   WHERE id = $1 AND verified_at IS NULL AND consumed_at IS NULL RETURNING id`,
)

/** False: something else was begun meanwhile. */
export const keepAccountProof = async (query: Query, id: string, data: ProofData): Promise<boolean> =>
  (await query(keepAccount, [id, JSON.stringify(data)])).length > 0
