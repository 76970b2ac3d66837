import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'

/** A token issuer with real keys: discovery, JWKS, and tokens signed by `jose`, an implementation that is not ours. */
export interface TokenIssuer {
  /** The `iss` of its tokens. */
  readonly issuer: string
  readonly jwksUri: string
  /** Paths asked for so far. */
  readonly requests: string[]
  /** A good RFC 9068 access token; `claims` and `header` replace or, with undefined, remove members. */
  sign(claims?: JWTPayload, header?: Partial<JWTHeaderParameters>, by?: SigningKey): Promise<string>
  /** Signs with a new key from now on. The old one stays published unless `drop`. */
  rotate(options?: { drop?: boolean; publish?: boolean }): Promise<SigningKey>
  /** What `/jwks` and discovery answer from now on; undefined = the real thing. */
  answer: { status?: number; jwks?: unknown; discovery?: unknown; headers?: Record<string, string>; hang?: boolean }
  readonly published: JWK[]
  readonly key: SigningKey
  close(): Promise<void>
}

export interface SigningKey {
  kid: string
  alg: string
  privateKey: CryptoKey
  jwk: JWK
}

export const newSigningKey = async (alg = 'ES256', kid: string = crypto.randomUUID()): Promise<SigningKey> => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

const withoutUndefined = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Value

export const startTokenIssuer = async ({ alg = 'ES256', path = '/oidc', port = 0 } = {}): Promise<TokenIssuer> => {
  let key = await newSigningKey(alg)
  const published = [key.jwk]
  const requests: string[] = []
  const server = createServer((request, response) => {
    const url = request.url ?? ''
    requests.push(url)
    if (self.answer.hang) return
    const bodies: Record<string, unknown> = {
      [`${path}/.well-known/openid-configuration`]: self.answer.discovery ?? {
        issuer: self.issuer,
        jwks_uri: self.jwksUri,
      },
      [`${path}/jwks`]: self.answer.jwks ?? { keys: published },
    }
    const body = bodies[url]
    response
      .writeHead(self.answer.status ?? (body ? 200 : 404), {
        'content-type': 'application/json',
        'cache-control': 'public, max-age=300',
        ...self.answer.headers,
      })
      .end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const self: TokenIssuer = {
    issuer: origin + path,
    jwksUri: `${origin}${path}/jwks`,
    requests,
    published,
    answer: {},
    get key() {
      return key
    },
    sign(claims = {}, header = {}, by = key) {
      const now = Math.floor(Date.now() / 1000)
      const payload = {
        iss: self.issuer,
        sub: 'u1',
        aud: 'https://api.test/orders',
        iat: now,
        exp: now + 300,
        ...claims,
      }
      return new SignJWT(withoutUndefined(payload))
        .setProtectedHeader(withoutUndefined({ alg: by.alg, kid: by.kid, typ: 'at+jwt', ...header }))
        .sign(by.privateKey)
    },
    async rotate({ drop = false, publish = true } = {}) {
      key = await newSigningKey(alg)
      if (drop) published.length = 0
      if (publish) published.push(key.jwk)
      return key
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return self
}
