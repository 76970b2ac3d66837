import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SigningKeys } from '../tokens/keys/signing-keys.ts'

/**
 * `GET /oidc/jwks`: every key that verifies a living token, and those about to sign. Clients may keep it for five
 * minutes, less when it may be old.
 */
export const createJwksEndpoint =
  ({ keys }: { keys: SigningKeys }) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const { body, etag, maxAge } = keys.jwks()
    const headers = { 'Cache-Control': `public, max-age=${maxAge}`, ETag: etag }
    // RFC 9110 §13.1.2: a list of tags, weak or not, or any.
    const known = request.headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
    if (known?.some((tag) => tag === etag || tag === '*')) {
      response.writeHead(304, headers).end()
      return
    }
    response.writeHead(200, {
      ...headers,
      // RFC 7517 §8.5.2
      'Content-Type': 'application/jwk-set+json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    })
    response.end(body)
  }
