import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { type Clock, toSeconds } from '../../platform/clock.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { derToRaw } from '../../platform/jwt/ecdsa-signature.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { Principal } from '../request/principal.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'

/**
 * The identity JWT for upstreams: who asks, signed by this gateway for one upstream and one minute, so that an API can
 * tell a request that came through the gateway from one that did not. It is no access token: another type, another
 * issuer, another audience.
 */
export interface IdentityAssertions {
  /**
   * Compact JWS, ES256, `typ: surrogate-identity+jwt`. ~30 µs: made anew for every request, with a `jti` of its own.
   */
  assertion(principal: Principal, to: { audience: string; route: string }): string
  /** The JWK Set document that upstreams verify with. */
  readonly jwks: string
}

/** `exp` is at most this much later than `iat`, in seconds. */
const lifeSeconds = 60

const identityType = 'surrogate-identity+jwt'

interface IdentityKey {
  kid: string
  privateKey: KeyObject
}

export const createIdentityAssertions = (options: {
  /** `iss` of the assertions. */
  issuer: string
  /** The first one signs; all are published. */
  keys: readonly [IdentityKey, ...IdentityKey[]]
  now: Clock
}): IdentityAssertions => {
  const { issuer, keys, now } = options
  const [{ kid, privateKey }] = keys
  const header = encode({ alg: 'ES256', typ: identityType, kid })

  return {
    assertion({ claims }, { audience, route }) {
      const { sub, act, scope, client_id, sid, organization_id, exp } = claims
      const iat = toSeconds(now())
      const payload = encode({
        iss: issuer,
        aud: audience,
        sub,
        act,
        scope,
        client_id,
        sid,
        organization_id,
        iat,
        exp: Math.min(iat + lifeSeconds, exp),
        jti: uuidv7(),
        route,
      })
      const input = `${header}.${payload}`
      return `${input}.${derToRaw(sign('sha256', Buffer.from(input), privateKey), 32).toString('base64url')}`
    },
    jwks: JSON.stringify({ keys: keys.map(publicJwk) }),
  }
}

/** JSON leaves out the members that are undefined. */
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const publicJwk = ({ kid, privateKey }: IdentityKey) => ({
  ...createPublicKey(privateKey).export({ format: 'jwk' }),
  kid,
  alg: 'ES256',
  use: 'sig',
})

/** RFC 7638 §3.2 */
const thumbprint = (key: KeyObject): string => {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' })
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

const privateJwk = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  d: z.string().min(1),
  kid: z.string().min(1).max(256).optional(),
})
const keyDocument = z.union([
  privateJwk.transform((jwk) => [jwk]),
  z.object({ keys: z.array(privateJwk).min(1).max(10) }).transform(({ keys }) => keys),
])

/**
 * Reads the key file: one private JWK (EC, P-256), or a JWK Set of which the first key signs and all are published, for
 * rotation. Keys without `kid` get their RFC 7638 thumbprint. Throws `StartupError`, which never quotes the file.
 */
export const readIdentityKeys = async (file: string): Promise<[IdentityKey, ...IdentityKey[]]> => {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new StartupError(`The key file of the gateway's identity cannot be read: ${file}`, {
      hint: 'Name another file with identity.keyFile.',
      cause,
    })
  })
  try {
    const [first, ...others] = keyDocument.parse(JSON.parse(text)).map((jwk) => {
      const privateKey = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' })
      return { kid: jwk.kid ?? thumbprint(privateKey), privateKey }
    })
    if (!first) throw new TypeError('there is no key')
    const keys: [IdentityKey, ...IdentityKey[]] = [first, ...others]
    if (new Set(keys.map(({ kid }) => kid)).size < keys.length) throw new TypeError('two keys have the same kid')
    return keys
  } catch {
    throw new StartupError(`The key file of the gateway's identity is not usable: ${file}`, {
      hint: 'It holds one private JWK of type EC, curve P-256, or a JWK Set of such keys. See docs/operators.md.',
    })
  }
}

export interface AssertIdentityParts {
  identity: IdentityAssertions | undefined
  upstreams: ReadonlyMap<string, { readonly identityAudience: string | undefined }>
}

/** Signs the caller's identity for upstreams that ask for it. Requests without authentication have none. */
export const createAssertIdentity = ({ identity, upstreams }: AssertIdentityParts): Stage<RoutedRequest> => {
  if (!identity) return () => {}
  return (context) => {
    const { principal, route } = context
    const audience = upstreams.get(route.upstream)?.identityAudience
    if (!principal || audience === undefined) return
    context.assertion = identity.assertion(principal, { audience, route: route.id })
  }
}
