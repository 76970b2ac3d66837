import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FormValues } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import {
  type AuthorizationServer,
  answered,
  challenge,
  rightRequest,
  startAuthorizationServer,
  tooManyInteractions,
} from './authorization-server.ts'

let server: AuthorizationServer
let client: TestApplication
let native: TestApplication
let resource: string

beforeAll(async () => {
  server = await startAuthorizationServer()
  client = await server.createClient({
    name: 'A <b>shop</b>',
    redirectUris: ['https://shop.test/cb', 'https://shop.test/cb?tenant=1'],
  })
  native = await server.createClient({ type: 'Native', redirectUris: ['http://127.0.0.1/cb', 'https://127.0.0.1/cb'] })
  resource = await server.issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
})
afterAll(() => server.close())

beforeEach(() => {
  server.begun.length = 0
  server.statements()
  server.leadTo({ kind: 'page', location: '/sign-in/1', setCookies: ['surrogate_browser=b; Path=/'] })
})

const right = (more?: FormValues) => rightRequest(client, more)

describe('a request that is right', () => {
  test('begins, in one look-up, with what was asked for', async () => {
    const answer = await server.get(
      right({
        scope: 'openid offline_access read:orders profile openid',
        resource,
        nonce: 'n-1',
        prompt: 'login consent',
        max_age: '0',
        login_hint: 'a@b.test',
        ui_locales: 'de-AT en <script>',
        acr_values: 'urn:surrogate:acr:mfa urn:other',
        organization_id: 'org_1',
        first_screen: 'register',
        display: 'popup',
        claims: '{"id_token":{"email":{"essential":true}}}',
        unknown: 'x',
      }),
    )
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toBe('/sign-in/1')
    expect(answer.headers.getSetCookie()).toEqual(['surrogate_browser=b; Path=/'])
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'cache-control': 'no-store',
      pragma: 'no-cache',
      'referrer-policy': 'no-referrer',
    })
    expect(server.statements()).toEqual(['authorization-request'])
    expect(server.begun).toEqual([
      {
        clientId: client.id,
        browser: undefined,
        request: {
          clientId: client.id,
          redirectUri: 'https://shop.test/cb',
          responseMode: 'query',
          state: 'a-state',
          nonce: 'n-1',
          codeChallenge: challenge,
          scopes: ['openid', 'offline_access', 'read:orders', 'profile'],
          resourceScopes: { [resource]: ['read:orders'] },
          resources: [resource],
          organizationId: 'org_1',
          prompts: ['login', 'consent'],
          maxAge: 0,
          loginHint: 'a@b.test',
          uiLocales: ['de-AT', 'en'],
          acrValues: ['urn:surrogate:acr:mfa'],
          wantsOfflineAccess: true,
          firstScreen: 'register',
        },
      },
    ])
  })

  test.each([
    ['query', 'https://shop.test/cb', /^https:\/\/shop\.test\/cb\?code=/],
    ['query', 'https://shop.test/cb?tenant=1', /^https:\/\/shop\.test\/cb\?tenant=1&code=/],
    ['fragment', 'https://shop.test/cb', /^https:\/\/shop\.test\/cb#code=/],
  ])('may lead straight to a code: %s of %s', async (mode, redirectUri, location) => {
    server.leadTo({ kind: 'authorized', code: 'the-code', setCookies: ['a=b'] })
    const answer = await server.get(right({ response_mode: mode, redirect_uri: redirectUri }))
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toMatch(location)
    expect(answered(answer)).toMatchObject({ code: 'the-code', state: 'a-state', iss: server.issuer.issuer })
    expect(answer.headers.getSetCookie()).toEqual(['a=b'])
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
  })

  test('may be answered by a form, whose values are escaped', async () => {
    server.leadTo({ kind: 'authorized', code: 'the-code', setCookies: [] })
    const answer = await server.get(right({ response_mode: 'form_post', state: '"><img src=x>' }))
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('action="https://shop.test/cb"')
    expect(answer.body).toContain('name="code" value="the-code"')
    expect(answer.body).toContain(`name="iss" value="${server.issuer.issuer}"`)
    expect(answer.body).not.toContain('<img src=x')
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("script-src 'sha256-"),
    })
  })

  test('that needs a page, but may show none, is refused to the client', async () => {
    server.leadTo({ kind: 'refused', error: 'login_required', description: 'Nobody is signed in.', setCookies: [] })
    const answer = await server.get(right({ prompt: 'none' }))
    expect(answer.status).toBe(303)
    expect(answered(answer)).toEqual({
      error: 'login_required',
      error_description: 'Nobody is signed in.',
      state: 'a-state',
      iss: server.issuer.issuer,
    })
  })
})

/** A page: nobody is sent anywhere, and nothing began. */
const expectPage = async (parameters: FormValues | string, client_ = client) => {
  const answer =
    typeof parameters === 'string'
      ? await fetch(`${server.url}/oidc/auth?${parameters}`, { redirect: 'manual' }).then(async (response) => ({
          status: response.status,
          headers: response.headers,
          body: await response.text(),
        }))
      : await server.get(rightRequest(client_, parameters))
  expect({ status: answer.status, location: answer.headers.get('location') }).toEqual({ status: 400, location: null })
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(answer.headers.get('x-frame-options')).toBe('DENY')
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.getSetCookie()).toEqual([])
  expect(answer.body).toContain('request-7')
  expect(server.begun).toEqual([])
  return answer
}

describe('nobody is redirected', () => {
  test.each([
    'https://shop.test:443/cb',
    'https://shop.test/cb/',
    'https://SHOP.test/cb',
    'https://shop.test/%63b',
    'https://shop.test/cb?x=1',
    'https://shop.test/cb#x',
    'https://shop.test/cb#',
    'https://shop.test/c\tb',
    'https://shop.test/cb\n',
    'https://shop.test@evil.test/cb',
    'https://shop.test.evil.test/cb',
    'https://shop.test\\@evil.test/cb',
    'https://shop.test/x/../cb',
    '//evil.test/cb',
    'javascript:alert(1)',
    '',
  ])('to the unregistered %o', async (redirectUri) => {
    await expectPage({ redirect_uri: redirectUri })
    // Whatever else is wrong.
    await expectPage({ redirect_uri: redirectUri, scope: 'none"', response_type: 'token' })
  })

  test.each([
    'http://127.0.0.1:50123/other',
    'http://127.0.0.2:50123/cb',
    'http://localhost.evil:50123/cb',
    'http://127.1:50123/cb',
    'http://2130706433:50123/cb',
    'http://[::ffff:127.0.0.1]:50123/cb',
    'https://127.0.0.1:50123/cb',
  ])('to %s of a native application on 127.0.0.1', async (redirectUri) => {
    await expectPage({ redirect_uri: redirectUri }, native)
  })

  test('but to a port of its own, if it is a native application', async () => {
    const asked = { redirect_uri: 'http://127.0.0.1:50123/cb' }
    expect((await server.get(rightRequest(native, asked))).status).toBe(303)
    expect(server.begun[0]?.request.redirectUri).toBe('http://127.0.0.1:50123/cb')
    server.begun.length = 0
    const site = await server.createClient({ redirectUris: ['http://127.0.0.1/cb'] })
    await expectPage(asked, site)
  })

  test.each([
    ['two redirect URIs', { redirect_uri: ['https://shop.test/cb', 'https://evil.test/cb'] }],
    ['the same redirect URI twice', { redirect_uri: ['https://shop.test/cb', 'https://shop.test/cb'] }],
    ['no redirect URI', { redirect_uri: undefined }],
    ['two clients', { client_id: ['one', 'two'] }],
    ['no client', { client_id: undefined }],
    ['an unknown client', { client_id: 'nobody' }],
    ['a NUL', { state: 'a\0b' }],
  ])('with %s', async (_name, parameters) => {
    await expectPage(parameters)
  })

  test('with bytes that are no text', async () => {
    const asked = String(new URLSearchParams(rightRequest(client) as Record<string, string>))
    await expectPage(`${asked}&x=%ff`)
    await expectPage(`${asked}&x=%zz`)
    await expectPage(`${asked}&x=%00`)
  })

  test('for an application that nobody signs in to', async () => {
    await expectPage({}, await server.createClient({ type: 'MachineToMachine' }))
  })

  test('and the page says what was refused, as text', async () => {
    const { body } = await expectPage({ redirect_uri: 'https://evil.test/"><script>alert(1)</script>' })
    expect(body).not.toContain('<script')
    expect(body).not.toContain('<b>shop')
    expect(body).not.toContain('href="https://evil.test')
    expect(body).toContain('https://evil.test/')
  })

  test('and the page speaks the language that was asked for', async () => {
    const german = await server.get({ client_id: 'nobody', ui_locales: 'de' })
    expect(german.body).toContain('<html lang="de"')
    expect((await server.get({ client_id: 'nobody' }, { 'accept-language': 'fr' })).body).toContain('<html lang="fr"')
  })
})

describe('the client is told', () => {
  test.each<[string, FormValues]>([
    ['invalid_request', { prompt: ['login', 'consent'] }],
    ['invalid_request', { unknown: ['1', '2'] }],
    ['invalid_request', { nonce: ['', 'x'] }],
    ['request_not_supported', { request: 'eyJhbGciOiJub25lIn0.e30.' }],
    ['request_uri_not_supported', { request_uri: 'https://shop.test/request.jwt' }],
    ['registration_not_supported', { registration: '{}' }],
    ['invalid_request', { response_type: undefined }],
    ['unsupported_response_type', { response_type: 'token' }],
    ['unsupported_response_type', { response_type: 'id_token' }],
    ['unsupported_response_type', { response_type: 'code id_token' }],
    ['invalid_request', { response_mode: 'web_message' }],
    ['invalid_request', { nonce: 'n'.repeat(1_025) }],
    ['invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
    ['invalid_request', { code_challenge: undefined }],
    ['invalid_request', { code_challenge_method: undefined }],
    ['invalid_request', { code_challenge_method: 'plain' }],
    ['invalid_request', { code_challenge: challenge.slice(1) }],
    ['invalid_request', { code_challenge: `${challenge}a` }],
    ['invalid_request', { code_challenge: `${challenge.slice(1)}=` }],
    ['invalid_request', { code_challenge: `${challenge.slice(1)}+` }],
    ['invalid_scope', { scope: 'openid "' }],
    ['invalid_scope', { scope: 'openid read:orders\u00e9' }],
    ['invalid_target', { resource: 'https://other.test' }],
    ['invalid_target', { resource: 'no uri' }],
    ['invalid_target', { resource: Array.from({ length: 9 }, (_, n) => `https://${n}.test`) }],
    ['invalid_target', { resource: Array.from({ length: 9 }, (_, n) => `https://${n}.test`).join(',') }],
    ['invalid_request', { prompt: 'none login' }],
    ['invalid_request', { prompt: 'something' }],
    ['invalid_request', { max_age: '-1' }],
    ['invalid_request', { max_age: '1.5' }],
    ['invalid_request', { max_age: 'soon' }],
    ['invalid_request', { login_hint: 'x'.repeat(257) }],
    ['invalid_request', { id_token_hint: 'no.id.token' }],
  ])('%s for %o', async (error, parameters) => {
    const answer = await server.get(right(parameters))
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toMatch(/^https:\/\/shop\.test\/cb\?error=/)
    expect(answered(answer)).toEqual({
      error,
      error_description: expect.stringMatching(/^[ -!#-[\]-~]+$/),
      state: 'a-state',
      iss: server.issuer.issuer,
    })
    expect(server.begun).toEqual([])
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('in the mode that it asked for', async () => {
    const fragment = await server.get(right({ response_mode: 'fragment', response_type: 'token' }))
    expect(fragment.headers.get('location')).toMatch(/^https:\/\/shop\.test\/cb#error=/)
    const form = await server.get(right({ response_mode: 'form_post', response_type: 'token' }))
    expect(form).toMatchObject({ status: 200, body: expect.stringContaining('unsupported_response_type') })
  })

  test('nothing in the words of the request', async () => {
    const mark = 'zebra'
    for (const name of ['scope', 'resource', 'response_type', 'response_mode', 'prompt', 'max_age', 'id_token_hint']) {
      const answer = await server.get(right({ resource, [name]: `https://${mark}.test` }))
      expect(answered(answer)['error_description']).toMatch(/^(?!.*zebra)/)
    }
  })

  test('the indicator that it may have meant', async () => {
    const answer = await server.get(right({ resource: `${resource}/` }))
    expect(answered(answer)).toMatchObject({
      error: 'invalid_target',
      error_description: expect.stringContaining(`Did you mean ${resource} ?`),
    })
  })

  test('its state only where it was sent once', async () => {
    expect(answered(await server.get(right({ state: ['a', 'b'] })))).not.toHaveProperty('state')
    expect(answered(await server.get(right({ state: undefined, prompt: 'x' })))).not.toHaveProperty('state')
  })
})

describe('state', () => {
  test.each([['<script>alert(1)</script>'], ['🦓 é'], ['a b+c%20&d=e#f'], ['s'.repeat(4_096)]])(
    '%o comes back as it was',
    async (state) => {
      server.leadTo({ kind: 'authorized', code: 'c', setCookies: [] })
      const answer = await server.get(right({ state }))
      expect(answered(answer)).toEqual({ code: 'c', state, iss: server.issuer.issuer })
      expect(answer.headers.get('location')).toMatch(/^[!-~]+$/)
    },
  )

  test.each([['a\r\nset-cookie: x=y'], ['s'.repeat(4_097)], ['🦓'.repeat(1_025)]])('%o is refused', async (state) => {
    const answer = await server.get(right({ state }))
    expect(answered(answer)).toEqual({
      error: 'invalid_request',
      error_description: expect.any(String),
      iss: server.issuer.issuer,
    })
    expect(answer.headers.getSetCookie()).toEqual([])
  })

  test('without a value counts as not sent', async () => {
    server.leadTo({ kind: 'authorized', code: 'c', setCookies: [] })
    expect(answered(await server.get(right({ state: '' })))).toEqual({ code: 'c', iss: server.issuer.issuer })
  })
})

describe('PKCE', () => {
  const without = { code_challenge: undefined, code_challenge_method: undefined }

  test('is optional only for an application that can keep a secret and says so', async () => {
    const old = await server.createClient({ custom: { requirePkce: false } })
    expect((await server.get(rightRequest(old, without))).headers.get('location')).toBe('/sign-in/1')
    expect(server.begun[0]?.request).not.toHaveProperty('codeChallenge')
    const page = await server.createClient({ type: 'SPA', custom: { requirePkce: false } })
    expect(answered(await server.get(rightRequest(page, without)))).toMatchObject({ error: 'invalid_request' })
    // What it sends must be right all the same.
    const plain = await server.get(rightRequest(old, { code_challenge_method: 'plain' }))
    expect(answered(plain)).toMatchObject({ error: 'invalid_request' })
  })
})

describe('scopes and resources', () => {
  const asked = async (parameters: FormValues) => {
    const answer = await server.get(right(parameters))
    if (answer.headers.get('location') !== '/sign-in/1') return answered(answer)['error']
    const { scopes, resources, resourceScopes } = server.begun.at(-1)!.request
    return { scopes, resources, resourceScopes }
  }

  test('several resources, in several parameters or with commas', async () => {
    const other = await server.issuer.createResource({ scopes: ['read:orders', 'send'] })
    const expected = {
      scopes: ['send', 'read:orders', 'openid'],
      resources: [resource, other],
      resourceScopes: { [resource]: ['read:orders'], [other]: ['send', 'read:orders'] },
    }
    const scope = 'send read:orders openid'
    expect(await asked({ scope, resource: [resource, other] })).toEqual(expected)
    expect(await asked({ scope, resource: `${resource},${other}` })).toEqual(expected)
    expect(await asked({ scope, resource: [`${resource},${other}`, resource] })).toEqual(expected)
    expect(await asked({ scope, resource: `${resource},https://none.test` })).toBe('invalid_target')
  })

  test('a resource whose name has a comma is not taken apart', async () => {
    const comma = await server.issuer.createResource({ indicator: 'https://comma.test/a,b', scopes: ['cut'] })
    expect(await asked({ scope: 'cut', resource: comma })).toMatchObject({ resources: [comma], scopes: ['cut'] })
  })

  test('a scope that exists nowhere is an error where there is a resource', async () => {
    expect(await asked({ scope: 'openid read:nothing', resource })).toBe('invalid_scope')
    expect(await asked({ scope: 'Read:orders', resource })).toBe('invalid_scope')
    expect(await asked({ scope: 'read:orders', resource })).toMatchObject({ scopes: ['read:orders'] })
  })

  test('and is ignored where there is none, which is logged once', async () => {
    const another = await server.createClient()
    for (let count = 0; count < 3; count++) {
      const answer = await server.get(rightRequest(another, { scope: 'openid username profile' }))
      expect(answer.headers.get('location')).toBe('/sign-in/1')
      expect(server.begun.at(-1)!.request.scopes).toEqual(['openid', 'profile'])
    }
    const lines: Record<string, unknown>[] = JSON.parse(server.logged())
    expect(lines.filter(({ clientId, level }) => clientId === another.id && level === 'warn')).toMatchObject([
      { scopes: ['username'] },
    ])
  })

  test('permissions of organizations need no resource', async () => {
    await server.issuer.api('POST', '/organization-scopes', { name: 'edit:team', description: '' })
    expect(await asked({ scope: 'openid edit:team' })).toMatchObject({ scopes: ['openid', 'edit:team'] })
    expect(await asked({ scope: 'edit:team read:orders', resource })).toMatchObject({
      scopes: ['edit:team', 'read:orders'],
      resourceScopes: { [resource]: ['read:orders'] },
    })
    expect(await asked({ scope: 'edit:team', resource: 'urn:logto:resource:organizations' })).toEqual({
      scopes: ['edit:team'],
      resources: [],
      resourceScopes: {},
    })
  })

  test('the default resource counts where none is asked for', async () => {
    const standard = await server.issuer.createResource({ scopes: ['count'], isDefault: true })
    expect(await asked({ scope: 'openid count' })).toEqual({
      scopes: ['openid', 'count'],
      resources: [],
      resourceScopes: { [standard]: ['count'] },
    })
    expect(await asked({ scope: 'openid username' })).toBe('invalid_scope')
    expect(await asked({ scope: 'count', resource })).toBe('invalid_scope')
    await server.issuer.sql('UPDATE resources SET is_default = false WHERE indicator = $1', [standard])
  })
})

describe('an id_token_hint', () => {
  const token = (claims: object, header = server.keys.active().headers.id) => {
    const input = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    return `${input}.${server.keys.active().sign(input).toString('base64url')}`
  }
  const claims = () => ({ iss: server.issuer.issuer, sub: 'user12345678', aud: client.id, iat: 1, exp: 2 })
  const hinted = async (hint: string) => {
    const answer = await server.get(right({ id_token_hint: hint }))
    return answer.headers.get('location') === '/sign-in/1'
      ? server.begun.at(-1)!.request.expectedUserId
      : answered(answer)['error']
  }

  test('says who is expected, however old it is', async () => {
    expect(await hinted(token(claims()))).toBe('user12345678')
  })

  test('counts while its key is published, also when another one signs', async () => {
    const old = token(claims())
    const [before] = await server.issuer.sql<{ kid: string }>(`SELECT kid FROM signing_keys WHERE state = 'active'`)
    await server.issuer.api('POST', '/configs/oidc/private-keys/rotate', {})
    await server.issuer.sql(`UPDATE signing_keys SET state = 'retiring' WHERE kid = $1`, [before?.kid])
    await server.issuer.sql(`UPDATE signing_keys SET state = 'active' WHERE kid <> $1`, [before?.kid])
    await server.keys.reload()
    expect(server.keys.active().kid).not.toBe(before?.kid)
    expect(await hinted(old)).toBe('user12345678')
  })

  test.each<[string, () => string]>([
    ['of another client', () => token({ ...claims(), aud: 'another' })],
    ['of several clients', () => token({ ...claims(), aud: [client.id, 'another'] })],
    ['of another issuer', () => token({ ...claims(), iss: 'https://evil.test' })],
    ['that is an access token', () => token(claims(), server.keys.active().headers.access)],
    ['that is a logout token', () => token(claims(), server.keys.active().headers.logout)],
    [
      'that was changed',
      () => token(claims()).replace(/\.[^.]+\./, `.${Buffer.from('{"sub":"x"}').toString('base64url')}.`),
    ],
    [
      'that nobody signed',
      () => {
        const none = Buffer.from('{"alg":"none"}').toString('base64url')
        return `${none}.${Buffer.from(JSON.stringify(claims())).toString('base64url')}.`
      },
    ],
    ['without a subject', () => token({ ...claims(), sub: undefined })],
  ])('%s is refused', async (_name, make) => {
    expect(await hinted(make())).toBe('invalid_request')
  })
})

describe('POST', () => {
  test('means the same, as a form or as JSON', async () => {
    const sameSite = { 'sec-fetch-site': 'same-origin', origin: new URL(server.issuer.issuer).origin }
    for (const headers of [{}, sameSite]) {
      const form = await server.post(right({ resource: [resource], scope: 'read:orders' }), headers)
      expect(form).toMatchObject({ status: 303 })
      expect(form.headers.get('location')).toBe('/sign-in/1')
    }
    const json = await server.post(JSON.stringify({ ...right(), max_age: 60, resource: [resource] }), {
      'content-type': 'application/json',
    })
    expect(json.headers.get('location')).toBe('/sign-in/1')
    expect(server.begun.map(({ request }) => [request.maxAge, request.resources])).toEqual([
      [undefined, [resource]],
      [undefined, [resource]],
      [60, [resource]],
    ])
  })

  test.each([
    ['another content type', 'a=b', 'text/plain'],
    ['a JSON list', '[]', 'application/json'],
    ['a JSON object in a parameter', '{"client_id":{}}', 'application/json'],
    ['more than 16 kB', `x=${'x'.repeat(16_384)}`, 'application/x-www-form-urlencoded'],
  ])('with %s is a page', async (_name, body, contentType) => {
    const answer = await server.post(body, { 'content-type': contentType })
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('request-7') })
    expect(answer.headers.get('location')).toBeNull()
  })

  test('with a repeated parameter is told to the client', async () => {
    expect(answered(await server.post(right({ nonce: ['1', '2'] })))).toMatchObject({ error: 'invalid_request' })
  })
})

describe('when it cannot go on', () => {
  test('because too many sign-ins are open, a page says so', async () => {
    server.leadTo(tooManyInteractions())
    const answer = await server.get(right())
    expect(answer.status).toBe(429)
    expect(answer.headers.get('retry-after')).toBe('60')
    expect(answer.headers.get('location')).toBeNull()
  })

  test('because of a fault, a page says so without its cause', async () => {
    server.leadTo(new Error('secret cause'))
    const answer = await server.get(right())
    expect(answer).toMatchObject({ status: 500, body: expect.stringContaining('request-7') })
    expect(answer.body).not.toContain('secret cause')
    expect(answer.headers.get('location')).toBeNull()
  })
})
