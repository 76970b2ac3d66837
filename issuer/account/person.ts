import type { OperationContext } from '../base/route.ts'
import type { Acr } from '../tokens/sessions/session.ts'

/**
 * Somebody who has signed in and looks after their own account: made of an opaque token by the Account API, of the
 * session cookie by the account pages. Never of an impersonation, of an exchange or of a personal access token.
 */
export interface AccountPerson {
  userId: string
  /** Where they signed in: what a change of password or factors spares. It may have ended, with offline access. */
  sessionId: string
  /** The authorization of the token. Undefined: the session itself, at the pages. */
  sid: string | undefined
  /** Undefined: the pages. */
  clientId: string | undefined
  /** Of the token. Undefined: the pages, which may do all that the person may. */
  scopes: ReadonlySet<string> | undefined
  /** RFC 8176 */
  amr: readonly string[]
  acr: Acr
  authTime: Date
  ip: string
  userAgent: string | undefined
  /** BCP 47, as `Accept-Language` sends it. */
  acceptLanguage?: string | undefined
  /** Which verification proves again who it is (`logto-verification-id`). The pages name none: the newest counts. */
  verificationId?: string | undefined
}

/** What an operation of the account needs to know of the call that started it; `mutate` takes it. */
export interface AccountContext extends OperationContext {
  person: AccountPerson
}

/** What verifications belong to: the authorization of a token, or the session of the pages. */
export const holderOf = ({ sid, sessionId }: Pick<AccountPerson, 'sid' | 'sessionId'>): string => sid ?? sessionId
