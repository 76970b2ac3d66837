import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import type { Acr } from '../tokens/sessions/session.ts'
import { sessionCounts } from '../tokens/sessions/session-store.ts'
import type { AccountPerson } from './person.ts'

const authorizationGoesOn = statement(
  'account-authorization-goes-on',
  'SELECT FROM authorizations WHERE id = $1 AND user_id = $2 AND ended_at IS NULL',
)
const sessionGoesOn = statement(
  'account-session-goes-on',
  `SELECT FROM sessions s WHERE id = $1 AND user_id = $2 AND ${sessionCounts('s')}`,
)

/** Whether what the person came with has not ended meanwhile. */
export const isStillSignedIn = async (
  transaction: Transaction,
  { sid, sessionId, userId }: AccountPerson,
): Promise<boolean> => {
  const [asked, id] = sid === undefined ? [sessionGoesOn, sessionId] : [authorizationGoesOn, sid]
  return (await queryOf(transaction)(asked, [id, userId])).length > 0
}

/** What an opaque token came of. */
export interface TokenAuthorization {
  sessionId: string
  amr: string[]
  acr: Acr
  authTime: Date
  isThirdParty: boolean
  /** The token came of an exchange, or is another client's. */
  isExchanged: boolean
}

const ofToken = statement(
  'account-token-authorization',
  `SELECT a.session_id AS "sessionId", a.amr, a.acr, a.authenticated_at AS "authTime", c.is_third_party AS "isThirdParty",
     t.is_exchanged OR t.client_id <> a.client_id AS "isExchanged"
   FROM opaque_tokens t JOIN authorizations a ON a.id = t.session_id AND a.user_id = t.user_id
     JOIN applications c ON c.id = t.client_id
   WHERE t.digest = $1`,
)

/** Undefined for tokens without one: of an exchange of a personal access token. */
export const findTokenAuthorization = async (
  transaction: Transaction,
  digest: Buffer,
): Promise<TokenAuthorization | undefined> => (await queryOf(transaction)<TokenAuthorization>(ofToken, [digest]))[0]
