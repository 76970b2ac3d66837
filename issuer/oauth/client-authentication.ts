import { timingSafeEqual } from 'node:crypto'
import { OAuthError } from '../../platform/problem.ts'
import { sha256 } from '../../platform/secret.ts'
import { type Client, isPublic } from './client.ts'
import type { Parameters } from './parameters.ts'

/**
 * Who the client says it is and how it proves it: `client_secret_basic`, `client_secret_post`, or nothing for public clients
 * (RFC 6749 §2.3). Unknown client, wrong secret and missing secret give one and the same answer after the same work.
 */
export interface ClientCredentials {
  clientId: string
  /** What the sent secret may be: as sent, and form-decoded (RFC 6749 §2.3.1; many clients do not encode). Empty: none was sent. */
  secrets: readonly string[]
}

/** What the store knows of a client's proofs. */
export interface ClientSecrets {
  /** SHA-256 of every secret that has not expired. */
  digests: readonly Buffer[]
}

const invalidClient = () =>
  new OAuthError('invalid_client', 'Client authentication failed.', {
    headers: { 'WWW-Authenticate': 'Basic realm="surrogate", charset="UTF-8"' },
  })

const invalidRequest = (description: string) => new OAuthError('invalid_request', description)

const formDecoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

const basicCredentials = (authorization: string): ClientCredentials => {
  const match = /^basic +(\S+) *$/i.exec(authorization)
  const encoded = match?.[1]
  if (encoded === undefined || !base64.test(encoded)) throw invalidClient()
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon <= 0 || text.includes('\0')) throw invalidClient()
  const [rawId, rawSecret] = [text.slice(0, colon), text.slice(colon + 1)]
  const secret = formDecoded(rawSecret)
  return {
    clientId: formDecoded(rawId) ?? rawId,
    secrets: secret === undefined || secret === rawSecret ? [rawSecret] : [rawSecret, secret],
  }
}

/** Reads the credentials of a request. Throws `invalid_client` when no client is named, `invalid_request` for two methods at once. */
export const readClientCredentials = (authorization: string | undefined, parameters: Parameters): ClientCredentials => {
  const bodyId = parameters.get('client_id')
  const bodySecret = parameters.get('client_secret')
  if (parameters.has('client_assertion') || parameters.has('client_assertion_type')) throw invalidClient()
  if (authorization === undefined) {
    if (bodyId === undefined) throw invalidClient()
    return { clientId: bodyId, secrets: bodySecret === undefined ? [] : [bodySecret] }
  }
  const credentials = basicCredentials(authorization)
  // RFC 6749 §2.3: "The client MUST NOT use more than one authentication method in each request."
  if (bodySecret !== undefined) throw invalidRequest('The client authenticates in two ways at once.')
  if (bodyId !== undefined && bodyId !== credentials.clientId) {
    throw invalidRequest('The client_id of the body is not that of the Authorization header.')
  }
  return credentials
}

// What an unknown client is compared with, so that it costs what a wrong secret costs.
const nobody: ClientSecrets = { digests: [sha256('surrogate: no such client')] }

const matches = (secrets: readonly string[], digests: readonly Buffer[]): boolean => {
  let found = false
  for (const secret of secrets) {
    const digest = sha256(secret)
    for (const known of digests) if (timingSafeEqual(digest, known)) found = true
  }
  return found
}

/** Returns the client when its proof holds. Throws the one `invalid_client`. */
export const authenticateClient = <Found extends Client & ClientSecrets>(
  { secrets }: ClientCredentials,
  found: Found | undefined,
): Found => {
  const proven = matches(secrets, (found ?? nobody).digests)
  if (!found) throw invalidClient()
  // A public client that sends a secret is not the client that was registered.
  if (isPublic(found) ? secrets.length > 0 : !proven) throw invalidClient()
  return found
}
