import { createPublicKey } from 'node:crypto'
import { exportSPKI, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  assertionType,
  generateClientKey,
  inSeconds,
  type KeyClient,
  registerKeyClient,
} from '../../support/client-keys.ts'
import { type Answer, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** RFC 7523: a client that signs instead of telling a secret. */

let issuer: TestIssuer
let resource: string
let client: KeyClient
beforeAll(async () => {
  // The many failures below are not what is under test.
  issuer = await startTestIssuer({ instances: 2, config: { rateLimits: { failedAuthentications: 100_000 } } })
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  client = await registerKeyClient(issuer)
})
afterAll(() => issuer.close())

const ask = (form: Record<string, string>, options?: { instance?: number }) =>
  issuer.token(undefined, { grant_type: 'client_credentials', resource, ...form }, options)

const expectInvalidClient = (answer: Answer) =>
  expect(answer).toMatchObject({
    status: 401,
    body: { error: 'invalid_client', error_description: 'Client authentication failed.' },
  })

const usedAssertions = async () =>
  (await issuer.sql<{ count: number }>('SELECT count(*)::int AS count FROM client_assertions'))[0]!.count

describe('an assertion authenticates a client', () => {
  test.each(['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256', 'PS256'])('signed with %s', async (alg) => {
    const other = await registerKeyClient(issuer, { alg })
    const answer = await ask(await other.assertion())
    expect(answer.status).toBe(200)
    expect((await issuer.verify(answer.body.access_token, resource)).client_id).toBe(other.id)
  })

  test('for the issuer or the token endpoint, as a text or as a list of one', async () => {
    for (const aud of [issuer.issuer, `${issuer.issuer}/token`, [issuer.issuer]]) {
      expect((await ask(await client.assertion({ claims: { aud } }))).status).toBe(200)
    }
  })

  test('with or without client_id, kid, iat, nbf and typ', async () => {
    expect((await ask({ client_id: client.id, ...(await client.assertion()) })).status).toBe(200)
    const bare = await client.assertion({ claims: { iat: undefined } as JWTPayload, header: { kid: undefined } })
    expect((await ask(bare)).status).toBe(200)
    const full = await client.assertion({ claims: { nbf: inSeconds(-1) }, header: { typ: 'JWT' } })
    expect((await ask(full)).status).toBe(200)
    expect((await ask(await client.assertion({ header: { typ: 'client-authentication+jwt' } }))).status).toBe(200)
  })

  test('at introspection and revocation too', async () => {
    const token = (await ask(await client.assertion())).body.access_token
    const send = async (path: string) => {
      const body = new URLSearchParams({ token, ...(await client.assertion()) })
      return request(`${issuer.url}/oidc/token/${path}`, { method: 'POST', body })
    }
    expect(await send('introspection')).toMatchObject({ status: 200, body: { active: true, client_id: client.id } })
    expect(await send('revocation')).toMatchObject({ status: 200 })
    expect(await send('introspection')).toMatchObject({ status: 200, body: { active: false } })
  })
})

// CVE-2020-5300, CVE-2020-15222: an assertion that was seen once was good for as long as it lived.
test('an assertion is not replayed, on no instance', async () => {
  const assertion = await client.assertion()
  expect((await ask(assertion)).status).toBe(200)
  expectInvalidClient(await ask(assertion))
  expectInvalidClient(await ask(assertion, { instance: 1 }))
  // Another text with the same jti is the same assertion.
  const jti = 'one-and-the-same'
  expect((await ask(await client.assertion({ claims: { jti } }))).status).toBe(200)
  expectInvalidClient(await ask(await client.assertion({ claims: { jti, exp: inSeconds(120) } })))
})

test('of fifty parallel requests with one assertion, over two instances, exactly one succeeds', async () => {
  const assertion = await client.assertion()
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(assertion, { instance: n % 2 })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  for (const answer of answers) if (answer.status !== 200) expectInvalidClient(answer)
})

test('two clients may use the same jti', async () => {
  const other = await registerKeyClient(issuer)
  for (const each of [client, other]) {
    expect((await ask(await each.assertion({ claims: { jti: 'shared' } }))).status).toBe(200)
  }
})

test('a stranger cannot use up an assertion: what does not hold is not remembered', async () => {
  const jti = 'wanted-by-a-stranger'
  const { privateKey: strangersKey } = await generateClientKey()
  const before = await usedAssertions()
  expectInvalidClient(await ask(await client.assertion({ claims: { jti }, key: strangersKey })))
  expectInvalidClient(await ask(await client.assertion({ claims: { jti, aud: 'https://other.example' } })))
  expect(await usedAssertions()).toBe(before)
  expect((await ask(await client.assertion({ claims: { jti } }))).status).toBe(200)
})

// CVE-2025-27370: a client was made to sign for a list of audiences, and one of them used it at another.
describe('an assertion that somebody else could use as well is refused:', () => {
  const audiences: Record<string, () => unknown> = {
    'for another server': () => 'https://other.example/oidc',
    'for ours and another': () => [issuer.issuer, 'https://other.example'],
    'for ours twice': () => [issuer.issuer, `${issuer.issuer}/token`],
    'for nobody': () => undefined,
    'for an empty list': () => [],
    'for a nested list': () => [[issuer.issuer]],
    'for the introspection endpoint': () => `${issuer.issuer}/token/introspection`,
    'with a slash more': () => `${issuer.issuer}/`,
    'for the Management API': () => issuer.managementResource,
  }
  test.each(Object.entries(audiences))('%s', async (_, audience) => {
    expectInvalidClient(await ask(await client.assertion({ claims: { aud: audience() } as JWTPayload })))
  })
})

describe('claims that do not hold are refused:', () => {
  const claims: Record<string, JWTPayload> = {
    expired: { exp: inSeconds(-60) },
    'without expiry': { exp: undefined },
    'valid for more than five minutes': { exp: inSeconds(400) },
    'for ever': { exp: 1e300 },
    'with an expiry that is a text': { exp: '9999999999' as never },
    'not yet valid': { nbf: inSeconds(200) },
    'issued in the future': { iat: inSeconds(200) },
    'without sub': { sub: undefined },
    'without iss': { iss: undefined },
    'issued by another than it is about': { iss: 'another' },
    'about another client': { sub: 'another', iss: 'another' },
    'about nobody': { sub: '', iss: '' },
    'without jti': { jti: undefined },
    'with an empty jti': { jti: '' },
    'with a number for a jti': { jti: 7 as never },
    'with an endless jti': { jti: 'x'.repeat(513) },
    'with a NUL in its sub': { sub: 'a\0b', iss: 'a\0b' },
  } as Record<string, JWTPayload>
  test.each(Object.entries(claims))('%s', async (_, wrong) => {
    expectInvalidClient(await ask(await client.assertion({ claims: wrong })))
  })
})

// RFC 8725 §3.1, §3.2: who writes the header must not choose how it is verified.
describe('signatures that do not hold are refused:', () => {
  test('none at all', async () => {
    const { client_assertion } = await client.assertion()
    const unsigned = new UnsecuredJWT(JSON.parse(atob(client_assertion.split('.')[1]!))).encode()
    expectInvalidClient(await ask({ client_assertion_type: assertionType, client_assertion: unsigned }))
    expectInvalidClient(
      await ask({ client_assertion_type: assertionType, client_assertion: client_assertion.replace(/[^.]*$/, '') }),
    )
  })

  test('an HMAC keyed with the public key', async () => {
    const rsa = await registerKeyClient(issuer, { alg: 'RS256' })
    const publicKey = createPublicKey({ key: rsa.jwk as never, format: 'jwk' })
    const pem = new TextEncoder().encode(publicKey.export({ type: 'spki', format: 'pem' }) as string)
    for (const key of [pem, new TextEncoder().encode(await exportSPKI(publicKey as never))]) {
      expectInvalidClient(await ask(await rsa.assertion({ header: { alg: 'HS256' }, key })))
    }
  })

  test('a key that another client registered, under the kid of this one', async () => {
    const other = await registerKeyClient(issuer)
    const stolen = await other.assertion({
      claims: { iss: client.id, sub: client.id },
      header: { kid: client.jwk.kid },
    })
    expectInvalidClient(await ask(stolen))
  })

  test('a key that the assertion brings along', async () => {
    const { privateKey, jwk } = await generateClientKey()
    const header = { kid: jwk.kid, jwk, jku: 'https://evil.example/jwks' }
    expectInvalidClient(await ask(await client.assertion({ header, key: privateKey })))
  })

  test('another algorithm than the key is registered for', async () => {
    const rsa = await registerKeyClient(issuer, { alg: 'RS256' })
    const { client_assertion } = await rsa.assertion()
    const [, payload, signature] = client_assertion.split('.')
    const header = btoa(JSON.stringify({ alg: 'PS256', kid: rsa.jwk.kid })).replace(/=+$/, '')
    const altered = `${header}.${payload}.${signature}`
    expectInvalidClient(await ask({ client_assertion_type: assertionType, client_assertion: altered }))
  })

  test('a token of another kind', async () => {
    expectInvalidClient(await ask(await client.assertion({ header: { typ: 'at+jwt' } })))
    const token = (await ask(await client.assertion())).body.access_token
    expectInvalidClient(await ask({ client_assertion_type: assertionType, client_assertion: token }))
  })

  test('an extension that is critical and not understood', async () => {
    const claims = { iss: client.id, sub: client.id, aud: issuer.issuer, jti: 'critical', exp: inSeconds(60) }
    const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'ES256', crit: ['x'], x: true })
    const client_assertion = await jwt.sign(client.privateKey, { crit: { x: true } })
    expectInvalidClient(await ask({ client_assertion_type: assertionType, client_assertion }))
  })

  test('no JWT', async () => {
    for (const client_assertion of ['x', 'a.b', 'a.b.c', '...', `${'e'.repeat(20_000)}.b.c`]) {
      expectInvalidClient(await ask({ client_assertion_type: assertionType, client_assertion }))
    }
  })
})

test('an assertion without its type, of another type, or a type alone is refused', async () => {
  const { client_assertion, client_assertion_type } = await client.assertion()
  expectInvalidClient(await ask({ client_assertion }))
  expectInvalidClient(await ask({ client_assertion_type }))
  expectInvalidClient(await ask({ client_assertion_type, client_id: client.id }))
  const saml = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer'
  expectInvalidClient(await ask({ client_assertion_type: saml, client_assertion }))
})

test('an assertion of one client in the name of another is refused', async () => {
  expectInvalidClient(await ask({ client_id: issuer.bootstrap.id, ...(await client.assertion()) }))
})

test('an assertion beside a secret is two ways to authenticate', async () => {
  const twice = { status: 400, body: { error: 'invalid_request' } }
  const assertion = await client.assertion()
  expect(await ask({ ...assertion, client_secret: 'x' })).toMatchObject(twice)
  const form = { grant_type: 'client_credentials', resource, ...assertion }
  expect(await issuer.token({ id: client.id, secret: 'x' }, form)).toMatchObject(twice)
  // The refused request used nothing up.
  expect((await ask(assertion)).status).toBe(200)
})

test('an assertion for a client without keys is refused', async () => {
  const { privateKey } = client
  for (const id of [issuer.bootstrap.id, (await issuer.createApplication({ type: 'Native' })).id, 'nobody']) {
    const claims = { iss: id, sub: id }
    expectInvalidClient(await ask(await client.assertion({ claims, key: privateKey })))
  }
})

describe('registration', () => {
  const create = (oidcClientMetadata: object, type = 'MachineToMachine') =>
    issuer.api('POST', '/applications', { name: 'x', type, oidcClientMetadata })

  test('an application for private_key_jwt has no secret, and none that it is given opens anything', async () => {
    const { jwk } = await generateClientKey()
    const metadata = { tokenEndpointAuthMethod: 'private_key_jwt', jwks: { keys: [jwk] } }
    const { status, body } = await create(metadata)
    expect({ status, body }).toMatchObject({ status: 200, body: { oidcClientMetadata: metadata } })
    expect(body).not.toHaveProperty('secret')
    const { value } = (await issuer.api('POST', `/applications/${body.id}/secrets`, { name: 'late' })).body
    expectInvalidClient(
      await issuer.token({ id: body.id, secret: value }, { grant_type: 'client_credentials', resource }),
    )
  })

  test('keys beside secrets let a client change from one to the other without a pause', async () => {
    const both = await registerKeyClient(issuer, { metadata: { tokenEndpointAuthMethod: undefined } })
    const { value } = (await issuer.api('POST', `/applications/${both.id}/secrets`, { name: 'second' })).body
    const bySecret = () => issuer.token({ id: both.id, secret: value }, { grant_type: 'client_credentials', resource })
    expect((await bySecret()).status).toBe(200)
    expect((await ask(await both.assertion())).status).toBe(200)
    const oidcClientMetadata = { tokenEndpointAuthMethod: 'private_key_jwt', jwks: { keys: [both.jwk] } }
    await issuer.api('PATCH', `/applications/${both.id}`, { oidcClientMetadata })
    expectInvalidClient(await bySecret())
    expect((await ask(await both.assertion())).status).toBe(200)
  })

  test('a key is replaced without a pause, and taking it away ends the tokens of the client', async () => {
    const changing = await registerKeyClient(issuer)
    const next = await generateClientKey()
    const register = (keys: object[]) =>
      issuer.api('PATCH', `/applications/${changing.id}`, {
        oidcClientMetadata: { tokenEndpointAuthMethod: 'private_key_jwt', jwks: { keys } },
      })
    const byNext = () => changing.assertion({ key: next.privateKey, header: { kid: next.jwk.kid } })
    const active = async (token: string) => {
      const body = new URLSearchParams({ token, ...(await byNext()) })
      return (await request(`${issuer.url}/oidc/token/introspection`, { method: 'POST', body })).body.active
    }
    const { access_token } = (await ask(await changing.assertion())).body
    await register([changing.jwk, next.jwk])
    expect((await ask(await byNext())).status).toBe(200)
    expect(await active(access_token)).toBe(true)
    await register([next.jwk])
    expectInvalidClient(await ask(await changing.assertion()))
    expect(await active(access_token)).toBe(false)
    expect(await active((await ask(await byNext())).body.access_token)).toBe(true)
  })

  const refusals: Record<string, () => Promise<[metadata: object, type?: string]>> = {
    'a jwksUri, and says what to do instead': async () => [{ jwksUri: 'https://client.example/jwks' }],
    'private_key_jwt without keys': async () => [{ tokenEndpointAuthMethod: 'private_key_jwt' }],
    'no keys': async () => [{ jwks: { keys: [] } }],
    'a private key': async () => {
      const { privateKey, jwk } = await generateClientKey()
      return [{ jwks: { keys: [{ ...jwk, d: (await crypto.subtle.exportKey('jwk', privateKey)).d }] } }]
    },
    'a symmetric key': async () => [{ jwks: { keys: [{ kty: 'oct', kid: 'a', k: 'c2VjcmV0' }] } }],
    'a key without kid': async () => {
      const { kid: _, ...jwk } = (await generateClientKey()).jwk
      return [{ jwks: { keys: [jwk] } }]
    },
    'two keys of one kid': async () => {
      const keys = [(await generateClientKey('ES256', 'a')).jwk, (await generateClientKey('ES256', 'a')).jwk]
      return [{ jwks: { keys } }]
    },
    'a key for encryption': async () => [{ jwks: { keys: [{ ...(await generateClientKey()).jwk, use: 'enc' }] } }],
    'a point that is not on the curve': async () => [
      { jwks: { keys: [{ kty: 'EC', crv: 'P-256', kid: 'a', x: 'AAAA', y: 'AAAA' }] } },
    ],
    'none for an application that has a secret': async () => [{ tokenEndpointAuthMethod: 'none' }],
    'keys for an application that cannot keep them': async () => [
      { jwks: { keys: [(await generateClientKey()).jwk] } },
      'SPA',
    ],
    'another method': async () => [{ tokenEndpointAuthMethod: 'client_secret_jwt' }],
  }
  test.each(Object.entries(refusals))('refuses %s', async (name, input) => {
    const answer = await create(...(await input()))
    expect(answer).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
    if (name.startsWith('a jwksUri')) expect(JSON.stringify(answer.body)).toContain('register the keys themselves')
  })
})

test('why an assertion was refused stands in the log, for the operator, and not in the answer', async () => {
  expectInvalidClient(await ask(await client.assertion({ claims: { aud: 'https://other.example' } })))
  expect(issuer.logged()).toContain('The assertion is for another audience.')
})

test('no assertion stands in the log or the database', async () => {
  const { client_assertion, ...rest } = await client.assertion({ claims: { jti: 'not-to-be-found' } })
  await ask({ client_assertion, ...rest })
  await ask({ client_assertion, ...rest })
  expect(issuer.logged()).not.toContain(client_assertion.slice(0, 100))
  const rows = await issuer.sql<{ text: string }>(
    'SELECT a::text AS text FROM client_assertions a UNION ALL SELECT l::text FROM logs l',
  )
  const text = rows.map((row) => row.text).join('\n')
  expect(text).not.toContain('not-to-be-found')
  expect(text).not.toContain(client_assertion.split('.')[2])
})
