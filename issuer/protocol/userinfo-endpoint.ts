import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../platform/database/database.ts'
import { isImpersonationSid } from '../../platform/jwt/sid.ts'
import type { Logger } from '../../platform/logger.ts'
import { OAuthError, type OAuthErrorCode } from '../base/errors/problems.ts'
import { userinfoClaims } from '../directory/users/userinfo-claims.ts'
import { findUserinfo } from '../directory/users/userinfo-store.ts'
import { dpopChallenge, type Proofs } from '../tokens/dpop/proofs.ts'
import { findOpaqueToken } from '../tokens/revocations/active-token-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { sendError, sendJson } from './answers.ts'
import { parseParameters } from './requests/parameters.ts'
import { readBody } from './requests/request-body.ts'

/**
 * `GET|POST /oidc/me`: who the user of an access token is, as far as its scopes tell (OpenID Connect Core §5.3). For
 * opaque tokens with `openid`: a JWT is for the API it names, so it opens nothing here.
 */
export const createUserinfoEndpoint =
  ({ query, proofs, logger }: { query: Query; proofs: Pick<Proofs, 'forToken'>; logger: Logger }) =>
  async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    try {
      const { scheme, token } = await presentedToken(request)
      const proof = scheme === 'dpop' ? proofs.forToken(request, response, '/oidc/me', token) : undefined
      const found = token.includes('.')
        ? undefined
        : await findOpaqueToken(query, tokenDigest('opaque-token', token), proof?.thumbprint)
      const user = found && (await findUserinfo(query, found.userId))
      if (!user) throw refusal('invalid_token', 'The access token is not valid here.', scheme)
      const scopes = found.scope.split(' ')
      if (!scopes.includes('openid')) {
        throw refusal('insufficient_scope', 'The access token was not issued with openid.', scheme, ', scope="openid"')
      }
      await proof?.use()
      const { act, sessionId } = found
      // Who acts for the user is told, so that an application can show it; the user's other identities are not.
      const told = act || isImpersonationSid(sessionId) ? scopes.filter((name) => name !== 'identities') : scopes
      sendJson(response, 200, { ...userinfoClaims(user, told), ...(act && { act }) })
    } catch (cause) {
      sendError(response, cause, logger, requestId)
    }
  }

type Scheme = 'bearer' | 'dpop'

const challenges: Readonly<Record<Scheme, string>> = { bearer: 'Bearer realm="surrogate"', dpop: dpopChallenge }

/** RFC 6750 §3, RFC 9449 §7.1: the challenge names the error. */
const refusal = (error: OAuthErrorCode, description: string, scheme: Scheme = 'bearer', more = '') =>
  new OAuthError(error, description, {
    headers: {
      'WWW-Authenticate': `${challenges[scheme]}, error="${error}", error_description="${description}"${more}`,
    },
  })

// RFC 6750 §2.1, RFC 9449 §7.1; the scheme is case-insensitive (RFC 9110 §11.1).
const inHeaderForm = /^(bearer|dpop) +([\w\-.~+/]+=*) *$/i

/**
 * From the header, or from the form of a POST (RFC 6750 §2.2), where it is a bearer token; never from the URL.
 */
const presentedToken = async (request: IncomingMessage): Promise<{ scheme: Scheme; token: string }> => {
  const { authorization, 'content-type': contentType } = request.headers
  const [, scheme = 'bearer', inHeader] = inHeaderForm.exec(authorization ?? '') ?? []
  const body = request.method === 'POST' ? await readBody(request) : undefined
  const inBody = body?.length ? parseParameters(body, contentType).get('access_token') : undefined
  if (inHeader !== undefined && inBody !== undefined)
    throw refusal('invalid_request', 'The access token is sent in two ways at once.')
  const token = inHeader ?? inBody
  if (token !== undefined) return { scheme: scheme.toLowerCase() as Scheme, token }
  if (authorization !== undefined && /^(bearer|dpop) /i.test(authorization))
    throw refusal('invalid_token', 'The access token cannot be read.')
  // RFC 6750 §3.1: without authentication information the challenge has no error. RFC 9449 §7.2: one for each scheme.
  throw new OAuthError('invalid_token', 'An access token is needed.', {
    headers: { 'WWW-Authenticate': `${challenges.bearer}, ${challenges.dpop}` },
  })
}
