import type { IncomingMessage, ServerResponse } from 'node:http'
import { claimsByScope } from '../directory/users/userinfo-claims.ts'
import { assertionAlgorithms } from './clients/client-assertion.ts'
import type { Grants } from './grants.ts'

const confidential = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']

/**
 * What this server can do, for clients to discover (RFC 8414, OpenID Connect Discovery 1.0). Only what works is told.
 */
const metadata = ({ issuer, grants }: { issuer: string; grants: Grants }) => ({
  issuer,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  grant_types_supported: [...grants.keys()],
  // RFC 8414 §2 wants the member; there is no authorization endpoint.
  response_types_supported: [],
  subject_types_supported: ['public'],
  scopes_supported: ['openid', ...Object.keys(claimsByScope)],
  token_endpoint_auth_methods_supported: [...confidential, 'none'],
  token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  userinfo_endpoint: `${issuer}/me`,
  introspection_endpoint: `${issuer}/token/introspection`,
  introspection_endpoint_auth_methods_supported: confidential,
  introspection_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  revocation_endpoint: `${issuer}/token/revocation`,
  revocation_endpoint_auth_methods_supported: [...confidential, 'none'],
  revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
})

export const createMetadataEndpoint = ({ issuer, grants }: { issuer: string; grants: Grants }) => {
  const body = JSON.stringify(metadata({ issuer, grants }))
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'public, max-age=300',
  }
  return (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, headers).end(body)
  }
}
