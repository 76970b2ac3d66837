import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { matchesRedirectUri } from '../../base/redirect-uri.ts'
import type { PageProblem } from '../../pages/index.ts'
import type { IdTokenHint, VerifyIdTokenHint } from '../../tokens/id-token-hint.ts'
import { type AuthorizationParameters, onlyValueOf } from '../authorization/authorization-parameters.ts'
import type { LogoutClient } from './end-session-store.ts'

/** A request to sign out (RP-Initiated Logout §2), checked. */
export interface LogoutRequest {
  /** Who asks; nobody, when somebody came by themselves. */
  client: LogoutClient | undefined
  hint: IdTokenHint | undefined
  /** Registered for the client; without one a page ends it. */
  returnUri: string | undefined
  state: string | undefined
}

/** What the person is told instead; nothing has ended. */
export interface LogoutRefusal {
  problem: PageProblem
  client?: LogoutClient | undefined
  /** What was sent. */
  value?: string | undefined
}

export interface LogoutRequestDependencies {
  verifyIdTokenHint: VerifyIdTokenHint
  findClient(clientId: string): Promise<LogoutClient | undefined>
}

const names = ['id_token_hint', 'client_id', 'post_logout_redirect_uri', 'state'] as const

export const isRefused = (outcome: LogoutRequest | LogoutRefusal): outcome is LogoutRefusal => 'problem' in outcome

/** In this order; nobody is sent to an address before it is proven to be the client's. */
export const createReadLogoutRequest =
  ({ verifyIdTokenHint, findClient }: LogoutRequestDependencies) =>
  async (parameters: AuthorizationParameters): Promise<LogoutRequest | LogoutRefusal> => {
    if (names.some((name) => (parameters.get(name)?.length ?? 0) > 1)) return { problem: 'invalid_request' }
    const [token, named, returnUri, state] = names.map((name) => onlyValueOf(parameters, name))

    const hint = token === undefined ? undefined : await hintOf(token, verifyIdTokenHint)
    if (hint === 'invalid') return { problem: 'invalid_id_token_hint' }
    // §2: "the OP MUST verify that the Client Identifier matches the one used when issuing the ID Token".
    if (hint && named !== undefined && named !== hint.clientId) return { problem: 'invalid_id_token_hint' }

    const clientId = named ?? hint?.clientId
    // An address that nobody answers for is left out.
    if (clientId === undefined) return { client: undefined, hint, returnUri: undefined, state: undefined }
    const client = await findClient(clientId)
    if (!client) return { problem: 'invalid_client', value: clientId }
    if (returnUri === undefined) return { client, hint, returnUri, state: undefined }
    const isRegistered = matchesRedirectUri(client.postLogoutRedirectUris, returnUri, {
      native: client.type === 'Native',
    })
    if (!isRegistered) return { problem: 'invalid_post_logout_redirect_uri', client, value: returnUri }
    return { client, hint, returnUri, state }
  }

const hintOf = (token: string, verify: VerifyIdTokenHint): Promise<IdTokenHint | 'invalid'> =>
  verify(token).catch((error: unknown) => {
    if (error instanceof JwtError) return 'invalid'
    throw error
  })

/** Where the browser goes when it is done. Undefined: to a page of ours. */
export const returnLocation = ({ returnUri, state }: LogoutRequest): string | undefined => {
  if (returnUri === undefined || state === undefined) return returnUri
  return `${returnUri}${returnUri.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`
}
