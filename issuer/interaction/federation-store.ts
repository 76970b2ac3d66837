import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { isOpen } from './interaction-store.ts'
import type { FederatedIdentity, ProofData, ProofPurpose } from './proofs.ts'

/** A proof that waits for the answer of a provider, or did. */
export interface AwaitedProof {
  id: string
  interactionId: string
  purpose: ProofPurpose
  /** Digest of the cookie of the one browser that the interaction belongs to. */
  browser: Buffer
  /** What the request to the provider left, sealed; null when there was an answer. */
  sealed: Buffer | null
}

const find = statement(
  'federation-find',
  `SELECT p.id, p.interaction_id AS "interactionId", p.purpose, i.browser,
     CASE WHEN p.verified_at IS NULL AND p.consumed_at IS NULL AND p.expires_at > now() AND p.tries = 0 THEN p.secret END
       AS sealed
   FROM proofs p JOIN interactions i ON i.id = p.interaction_id WHERE p.id = $1 AND p.kind = 'federated'`,
)

export const findAwaited = async (query: Query, id: string): Promise<AwaitedProof | undefined> =>
  (await query<AwaitedProof>(find, [id]))[0]

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
