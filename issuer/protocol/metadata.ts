import type { IncomingMessage, ServerResponse } from 'node:http'
import { proofAlgorithms } from '../../platform/jwt/algorithms.ts'
import { claimsByScope } from '../directory/users/userinfo-claims.ts'
import { responseModes } from '../interaction/authorization-request.ts'
import { locales } from '../pages/index.ts'
import { assertionAlgorithms } from './clients/client-assertion.ts'
import type { Grants } from './grants.ts'

const confidential = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']

/** Of ID tokens (OpenID Connect Core §2) and, by scope, of userinfo too (§5.1). */
const claims = [
  ...['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'acr', 'amr', 'sid'],
  ...['name', 'family_name', 'given_name', 'middle_name', 'nickname', 'preferred_username', 'profile', 'picture'],
  ...['website', 'gender', 'birthdate', 'zoneinfo', 'locale', 'updated_at'],
  ...['email', 'email_verified', 'phone_number', 'phone_number_verified', 'address'],
]

/** Without `create`: there is no page yet on which somebody registers. */
const prompts = ['none', 'login', 'consent', 'select_account', 'create']

export interface MetadataDependencies {
  issuer: string
  grants: Grants
  /** Of the keys that ID tokens can be signed with. */
  idTokenAlgorithms(): readonly string[]
}

/**
 * What this server can do, for clients to discover (RFC 8414, OpenID Connect Discovery 1.0). Only what works is told.
 */
const metadata = ({ issuer, grants }: MetadataDependencies, idTokenAlgorithms: readonly string[]) => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  pushed_authorization_request_endpoint: `${issuer}/request`,
  device_authorization_endpoint: `${issuer}/device/auth`,
  token_endpoint: `${issuer}/token`,
  end_session_endpoint: `${issuer}/session/end`,
  backchannel_logout_supported: true,
  backchannel_logout_session_supported: true,
  jwks_uri: `${issuer}/jwks`,
  grant_types_supported: [...grants.keys()],
  response_types_supported: ['code'],
  response_modes_supported: responseModes,
  code_challenge_methods_supported: ['S256'],
  prompt_values_supported: prompts,
  acr_values_supported: ['urn:surrogate:acr:basic'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: idTokenAlgorithms,
  scopes_supported: ['openid', 'offline_access', ...Object.keys(claimsByScope)],
  claims_supported: claims,
  ui_locales_supported: locales,
  authorization_response_iss_parameter_supported: true,
  claims_parameter_supported: false,
  request_parameter_supported: false,
  // Those of others; a `request_uri` of ours (RFC 9126) is.
  request_uri_parameter_supported: false,
  token_endpoint_auth_methods_supported: [...confidential, 'none'],
  token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  dpop_signing_alg_values_supported: proofAlgorithms,
  userinfo_endpoint: `${issuer}/me`,
  introspection_endpoint: `${issuer}/token/introspection`,
  introspection_endpoint_auth_methods_supported: confidential,
  introspection_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  revocation_endpoint: `${issuer}/token/revocation`,
  revocation_endpoint_auth_methods_supported: [...confidential, 'none'],
  revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
})

export const createMetadataEndpoint = (dependencies: MetadataDependencies) => {
  let made = { algorithms: '', body: '' }
  const current = () => {
    const list = dependencies.idTokenAlgorithms()
    const algorithms = list.join(' ')
    if (made.algorithms !== algorithms) made = { algorithms, body: JSON.stringify(metadata(dependencies, list)) }
    return made.body
  }
  return (_request: IncomingMessage, response: ServerResponse): void => {
    const body = current()
    response
      .writeHead(200, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': Buffer.byteLength(body),
        'Cache-Control': 'public, max-age=300',
      })
      .end(body)
  }
}
