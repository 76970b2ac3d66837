import { timingSafeEqual } from 'node:crypto'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import type { ParsedJwt } from '../../../platform/jwt/parse.ts'
import { sha256 } from '../../../platform/secret.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Parameters } from '../requests/parameters.ts'
import { type Client, isPublic, type SecurityProfile } from './client.ts'
import { type Assertion, assertionType, readAssertion, verifyAssertion } from './client-assertion.ts'

/**
 * Who the client says it is and how it proves it: `client_secret_basic`, `client_secret_post`, `private_key_jwt`, or
 * nothing for public clients (RFC 6749 §2.3, RFC 7523). Unknown client, wrong proof and missing proof give one and the
 * same answer after the same work.
 */
export interface ClientCredentials {
  clientId: string
  /**
   * What the sent secret may be: as sent, and form-decoded (RFC 6749 §2.3.1; many clients do not encode). Empty: none
   * was sent.
   */
  secrets: readonly string[]
  /** Sent instead of a secret; not verified yet. */
  assertion?: ParsedJwt
}

export interface KnownSecret {
  name: string
  digest: Buffer
}

/** What the store knows of a client's proofs. */
export interface ClientProofs {
  /** Every secret that has not expired, by its SHA-256. */
  secrets: readonly KnownSecret[]
  /** The registered JWK Set as JSON. */
  jwks: string | null
  /** `oidcClientMetadata.tokenEndpointAuthMethod`; with `private_key_jwt` no secret is accepted. */
  authenticationMethod: string | null
  securityProfile: SecurityProfile | undefined
}

export const invalidClient = (cause?: unknown): OAuthError =>
  new OAuthError('invalid_client', 'Client authentication failed.', {
    headers: { 'WWW-Authenticate': 'Basic realm="surrogate", charset="UTF-8"' },
    cause,
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
  if (colon <= 0) throw invalidClient()
  const [rawId, rawSecret] = [text.slice(0, colon), text.slice(colon + 1)]
  const clientId = formDecoded(rawId) ?? rawId
  // Postgres text cannot hold NUL.
  if (clientId.includes('\0')) throw invalidClient()
  const secret = formDecoded(rawSecret)
  return {
    clientId,
    secrets: secret === undefined || secret === rawSecret ? [rawSecret] : [rawSecret, secret],
  }
}

// RFC 6749 §2.3: "The client MUST NOT use more than one authentication method in each request."
const refuseSecondMethod = (other: string | undefined) => {
  if (other !== undefined) throw invalidRequest('The client authenticates in two ways at once.')
}

const asInvalidClient = <Result>(work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    throw error instanceof JwtError ? invalidClient(error) : error
  }
}

const assertionCredentials = (authorization: string | undefined, parameters: Parameters): ClientCredentials => {
  refuseSecondMethod(authorization ?? parameters.get('client_secret'))
  const text = parameters.get('client_assertion')
  if (text === undefined || parameters.get('client_assertion_type') !== assertionType) throw invalidClient()
  const { assertion, clientId } = asInvalidClient(() => readAssertion(text))
  // RFC 7521 §4.2: client_id "is unnecessary … if present, MUST identify the same client".
  if ((parameters.get('client_id') ?? clientId) !== clientId) throw invalidClient()
  return { clientId, secrets: [], assertion }
}

/**
 * Reads the credentials of a request. Throws `invalid_client` when no client is named, `invalid_request` for two
 * methods at once.
 */
export const readClientCredentials = (authorization: string | undefined, parameters: Parameters): ClientCredentials => {
  if (parameters.has('client_assertion') || parameters.has('client_assertion_type')) {
    return assertionCredentials(authorization, parameters)
  }
  const bodyId = parameters.get('client_id')
  const bodySecret = parameters.get('client_secret')
  if (authorization === undefined) {
    if (bodyId === undefined) throw invalidClient()
    return { clientId: bodyId, secrets: bodySecret === undefined ? [] : [bodySecret] }
  }
  const credentials = basicCredentials(authorization)
  refuseSecondMethod(bodySecret)
  if (bodyId !== undefined && bodyId !== credentials.clientId) {
    throw invalidRequest('The client_id of the body is not that of the Authorization header.')
  }
  return credentials
}

// What an unknown client is compared with, so that it costs what a wrong secret costs.
const unknownClient: ClientProofs = {
  secrets: [{ name: '', digest: sha256('surrogate: no such client') }],
  jwks: null,
  authenticationMethod: null,
  securityProfile: undefined,
}

/** Which of the known secrets was sent; all are compared. */
const matching = (sent: readonly string[], known: readonly KnownSecret[]): KnownSecret | undefined => {
  let found: KnownSecret | undefined
  for (const text of sent) {
    const digest = sha256(text)
    for (const secret of known) if (timingSafeEqual(digest, secret.digest)) found = secret
  }
  return found
}

/** What proved the client: an assertion, a secret, or nothing. */
export interface ClientProof {
  /** It must still be used up, which only the database can do once (`useAssertion`). */
  assertion?: Assertion
  secretName?: string
}

/** Undefined: nothing did. */
const proofOf = (
  { clientId, secrets: sent, assertion }: ClientCredentials,
  { secrets, jwks, authenticationMethod, securityProfile }: ClientProofs,
  expected: { issuer: string; now: Date },
): ClientProof | undefined => {
  if (assertion) {
    return {
      assertion: asInvalidClient(() => verifyAssertion(assertion, { clientId, jwks, securityProfile, ...expected })),
    }
  }
  const secret = matching(sent, secrets)
  return secret && authenticationMethod !== 'private_key_jwt' ? { secretName: secret.name } : undefined
}

/** Returns what proved the client; nothing has to prove a public one. Throws the one `invalid_client`. */
export const checkClient = (
  credentials: ClientCredentials,
  found: (Client & ClientProofs) | undefined,
  /** Of assertions: see `verifyAssertion`. */
  expected: { issuer: string; now: Date },
): ClientProof => {
  const proof = proofOf(credentials, found ?? unknownClient, expected)
  if (!found) throw invalidClient()
  // A public client that sends a proof is not the client that was registered.
  const isSilent = credentials.secrets.length === 0 && credentials.assertion === undefined
  if (isPublic(found) ? !isSilent : proof === undefined) throw invalidClient()
  return proof ?? {}
}
