import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { TestIssuer } from './issuer.ts'

/** A client that proves itself with a key pair, registered through the Management API. */
export interface KeyClient {
  id: string
  privateKey: CryptoKey
  jwk: JWK
  /**
   * The form members that authenticate it; each call makes a new assertion. A claim or header member that is undefined
   * is left out.
   */
  assertion(options?: AssertionOptions): Promise<{ client_assertion_type: string; client_assertion: string }>
}

export interface AssertionOptions {
  claims?: JWTPayload
  header?: Record<string, unknown>
  /** Default: the client's own. */
  key?: CryptoKey | Uint8Array
}

export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds

export const generateClientKey = async (alg = 'ES256', kid: string = randomUUID()) => {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } }
}

export const registerKeyClient = async (
  issuer: TestIssuer,
  { alg = 'ES256', type = 'MachineToMachine', metadata = {} }: { alg?: string; type?: string; metadata?: object } = {},
): Promise<KeyClient> => {
  const { privateKey, jwk } = await generateClientKey(alg)
  const answer = await issuer.api('POST', '/applications', {
    name: 'A client with a key',
    type,
    oidcClientMetadata: { tokenEndpointAuthMethod: 'private_key_jwt', jwks: { keys: [jwk] }, ...metadata },
  })
  if (answer.status !== 200) throw new Error(`not registered: ${answer.status} ${JSON.stringify(answer.body)}`)
  const { id } = answer.body
  return {
    id,
    privateKey,
    jwk,
    async assertion({ claims = {}, header = {}, key = privateKey } = {}) {
      const good = { iss: id, sub: id, aud: issuer.issuer, jti: randomUUID(), iat: inSeconds(0), exp: inSeconds(60) }
      const protectedHeader = JSON.parse(JSON.stringify({ alg, kid: jwk.kid, ...header }))
      return {
        client_assertion_type: assertionType,
        client_assertion: await new SignJWT({ ...good, ...claims }).setProtectedHeader(protectedHeader).sign(key),
      }
    },
  }
}
