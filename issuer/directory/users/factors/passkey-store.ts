import { type Query, queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'
import type { StoredCredential } from './webauthn/authentication.ts'
import type { KnownCredential } from './webauthn/descriptors.ts'
import type { NewCredential } from './webauthn/registration.ts'

/** A passkey, with whose it is. */
export interface Passkey extends StoredCredential {
  id: string
  userId: string
}

const select = statement(
  'passkey-find',
  `SELECT p.id, p.user_id AS "userId", u.webauthn_handle AS "userHandle", p.credential_id AS "credentialId",
     p.public_key AS "publicKey", p.algorithm, p.sign_count AS "signCount", p.is_backup_eligible AS "isBackupEligible"
   FROM passkeys p JOIN users u ON u.id = p.user_id WHERE p.credential_id = $1`,
)

/** The passkey with this credential id, whosever it is. */
export const findPasskey = async (query: Query, credentialId: Buffer): Promise<Passkey | undefined> =>
  (await query<Passkey>(select, [credentialId]))[0]

const list = statement(
  'passkeys-of-user',
  'SELECT credential_id AS "credentialId", transports FROM passkeys WHERE user_id = $1 ORDER BY created_at, id',
)

/** For options: which to ask for, and which not to make again. */
export const listCredentials = (query: Query, userId: string): Promise<KnownCredential[]> =>
  query<KnownCredential>(list, [userId])

const handle = statement('user-handle-find', 'SELECT webauthn_handle AS handle FROM users WHERE id = $1')

/** What authenticators know the person by. Undefined until there is a passkey. */
export const findUserHandle = async (query: Query, userId: string): Promise<Buffer | undefined> =>
  (await query<{ handle: Buffer | null }>(handle, [userId]))[0]?.handle ?? undefined

const keepHandle = statement(
  'user-handle-keep',
  `UPDATE users SET webauthn_handle = coalesce(webauthn_handle, $2) WHERE id = $1 RETURNING webauthn_handle = $2 AS "isSame"`,
)
const insert = statement(
  'passkey-insert',
  `INSERT INTO passkeys (id, user_id, credential_id, public_key, algorithm, sign_count, transports, is_backup_eligible,
     is_backed_up, name, agent)
   VALUES ($1, $2, $3, $4, $5, $6, $7::text[], $8, $9, $10, $11) ON CONFLICT (credential_id) DO NOTHING RETURNING id`,
)

export interface NewPasskey {
  id: string
  userId: string
  /** The one that it was made for. */
  userHandle: Buffer
  credential: NewCredential
  name: string | undefined
  agent: string | undefined
}

/** False: somebody has this credential, or the person got another handle meanwhile. */
export const insertPasskey = async (
  trx: Transaction,
  { id, userId, userHandle, credential, name, agent }: NewPasskey,
): Promise<boolean> => {
  const query = queryOf(trx)
  const [owner] = await query<{ isSame: boolean }>(keepHandle, [userId, userHandle])
  if (!owner?.isSame) return false
  const values = [
    id,
    userId,
    credential.credentialId,
    credential.publicKey,
    credential.algorithm,
    credential.signCount,
    credential.transports,
    credential.isBackupEligible,
    credential.isBackedUp,
    name?.slice(0, 128) ?? null,
    agent?.slice(0, 512) ?? null,
  ]
  return (await query(insert, values)).length > 0
}

// As `isBehind` of authentication.ts, for whoever uses the same credential at the same time.
const use = statement(
  'passkey-use',
  `UPDATE passkeys SET sign_count = greatest(sign_count, $2::bigint), is_backed_up = $3, last_used_at = now()
   WHERE id = $1 AND (is_backup_eligible OR sign_count < $2::bigint OR (sign_count = 0 AND $2::bigint = 0)) RETURNING id`,
)

/**
 * Keeps what an answer told. False: the passkey is gone, or another answer with this counter or a later one came first,
 * which is `counter_not_increased`.
 */
export const recordPasskeyUse = async (
  transaction: Transaction,
  id: string,
  { signCount, isBackedUp }: { signCount: number; isBackedUp: boolean },
): Promise<boolean> => (await queryOf(transaction)(use, [id, signCount, isBackedUp])).length > 0

const rename = statement('passkey-rename', 'UPDATE passkeys SET name = $3 WHERE id = $1 AND user_id = $2 RETURNING id')

/** False: the person has no such passkey. */
export const renamePasskey = async (
  trx: Transaction,
  { userId, id, name }: { userId: string; id: string; name: string },
): Promise<boolean> => (await queryOf(trx)(rename, [id, userId, name])).length > 0
