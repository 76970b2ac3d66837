import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Provider } from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../platform/secret.ts'
import { createBrowser, type Hop } from '../../testing/browser.ts'
import { type SignInOptions, signIn } from '../../testing/sign-in.ts'
import { generateClientKey } from '../support/client-keys.ts'

/**
 * The walk against an issuer that is not ours, oidc-provider, with pages whose forms are named as ours are: what the
 * command takes for granted beyond the standards is in these pages.
 */

const orders = 'https://api.test/orders'
const callback = 'https://app.test/callback?tenant=1'
const password = 'correct horse battery staple'
const web = { id: 'web', secret: 'a secret: with % & + in it' }

let issuer: { url: string; close(): Promise<void> }
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer.close())

const walk = async (changes: Partial<SignInOptions> = {}) => {
  const hops: Hop[] = []
  const signedIn = signIn({
    issuer: new URL(issuer.url),
    clientId: 'spa',
    clientSecret: undefined,
    redirectUri: callback,
    user: 'alice',
    password: new Secret(password),
    scope: 'openid offline_access read:orders',
    resources: [orders],
    parameters: { prompt: 'consent' },
    consent: true,
    browser: createBrowser({ onHop: (hop) => hops.push(hop) }),
    ...changes,
  })
  return { hops, outcome: await signedIn.catch((error: Error) => `${error.name}: ${error.message}`) }
}

describe('a person is signed in', () => {
  test('over sign-in and consent, and the tokens are theirs', async () => {
    const { outcome, hops } = await walk()
    expect(outcome).toMatchObject({
      idToken: { sub: 'alice', aud: 'spa', iss: issuer.url },
      accessToken: { sub: 'alice', aud: orders, scope: 'read:orders' },
      tokens: { token_type: 'Bearer', refresh_token: expect.any(String) },
    })
    expect(hops.map(({ method, status, title, fields }) => [method, status, title ?? fields])).toEqual([
      ['GET', 200, undefined],
      ['GET', 303, undefined],
      ['GET', 200, 'Sign in'],
      ['POST', 303, ['csrf', 'identifier', 'password', 'choice']],
      ['GET', 303, undefined],
      ['GET', 200, 'Consent'],
      ['POST', 303, ['csrf', 'choice']],
      ['GET', 303, undefined],
      ['POST', 200, ['grant_type', 'code', 'redirect_uri', 'code_verifier', 'client_id', 'resource']],
      ['GET', 200, undefined],
    ])
  })

  test('with a confidential application, which proves itself as RFC 6749 says', async () => {
    const { outcome } = await walk({ clientId: web.id, clientSecret: new Secret(web.secret) })
    expect(outcome).toMatchObject({ idToken: { sub: 'alice', aud: web.id } })
  })

  test('and nothing that is shown holds a secret', async () => {
    const { hops, outcome } = await walk()
    const shown = JSON.stringify(hops)
    const { tokens } = outcome as { tokens: Record<string, string> }
    for (const secret of [password, tokens['access_token']!, tokens['refresh_token']!, tokens['id_token']!])
      expect(shown).not.toContain(secret)
    expect(shown).not.toMatch(/(?:code|state|nonce|code_challenge)=(?!…)[^&"]/)
  })
})

describe('the walk ends, with a reason', () => {
  test('at a password that is wrong, which is sent once', async () => {
    const { outcome, hops } = await walk({ password: new Secret('wrong') })
    expect(outcome).toBe('SignInFailed: The issuer shows the sign-in again: The name or the password is wrong.')
    expect(hops.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('at a consent that nobody gave on the command line', async () => {
    const { outcome } = await walk({ consent: false })
    expect(outcome).toContain('--consent gives it. Allow spa?')
  })

  test.each<[string, Partial<SignInOptions>, string]>([
    ['at an application that is not known', { clientId: 'nobody' }, 'answered 400'],
    ['at a redirect URI that is not registered', { redirectUri: 'https://evil.test/' }, 'answered 400'],
    ['at what the application is told', { parameters: { prompt: 'none' } }, 'is told login_required'],
    ['at a wrong secret', { clientId: web.id, clientSecret: new Secret('no') }, 'answered 401. invalid_client'],
    ['at an address that is no issuer', { issuer: new URL('http://127.0.0.1:1/oidc') }, 'cannot be reached'],
  ])('%s', async (_, changes, reason) => {
    const { outcome } = await walk(changes)
    expect(outcome).toContain(reason)
    expect(outcome).not.toContain(password)
  })
})

describe('the command', () => {
  const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))
  const run = async (args: readonly string[], { input = '', env = {} } = {}) => {
    const child = spawn(process.execPath, [surrogate, 'login', ...args], {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.end(input)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code, stdout, stderr }
  }
  const asked = () => [
    ...['--issuer', issuer.url, '--redirect-uri', callback, '--user', 'alice', '--consent'],
    ...['--scope', 'openid offline_access read:orders', '--resource', orders, '--prompt', 'consent'],
  ]

  test('reads the password from standard input and prints one object', async () => {
    const { code, stdout } = await run([...asked(), '--client', 'spa', '--json'], { input: `${password}\n` })
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, idToken: { sub: 'alice' }, accessToken: { aud: orders } })
    expect(code).toBe(0)
  })

  test('takes secrets from the environment, and shows the steps and no password', async () => {
    const env = { LOGIN_PASSWORD: password, LOGIN_CLIENT_SECRET: web.secret }
    const { code, stdout } = await run([...asked(), '--client', web.id], { env })
    expect(stdout).toMatch(/^POST .*\/sign-in\/\S+ \(csrf, identifier, password, choice\)\n {5}303 → /m)
    expect(stdout).toContain('ID token, verified:')
    expect(stdout).not.toContain(password)
    expect(code).toBe(0)
  })

  test('ends with 1 when the sign-in is refused', async () => {
    const { code, stdout } = await run([...asked(), '--client', 'spa'], { input: 'wrong' })
    expect({ code, last: stdout.trimEnd().split('\n').at(-1) }).toEqual({
      code: 1,
      last: '✗ The issuer shows the sign-in again: The name or the password is wrong.',
    })
  })

  test.each([
    ['without a client', ['--user', 'a', '--redirect-uri', 'https://app.test/'], '--client is missing'],
    ['with a password among the arguments', ['--password', 'x'], "Unknown option '--password'"],
    ['over the network in the clear', ['--issuer', 'http://id.example.test/oidc'], '--issuer must be https'],
  ])('does not begin %s', async (_, args, message) => {
    const { code, stderr, stdout } = await run(args, { input: password })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
  })
})

describe('the password goes to the issuer only', () => {
  const found = async (pages: Record<string, (response: ServerResponse, url: string) => void>, path = '/oidc') => {
    const posted: string[] = []
    const server = createServer((request, response) => {
      if (request.method === 'POST') posted.push(request.url!)
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const page = pages[new URL(request.url!, url).pathname]
      if (page) page(response, url)
      else response.writeHead(404).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { outcome } = await walk({ issuer: new URL(`http://127.0.0.1:${port}${path}`) })
    await new Promise((resolve) => server.close(resolve))
    return { outcome, posted }
  }
  const metadata = (url: string) => ({
    issuer: `${url}/oidc`,
    authorization_endpoint: `${url}/oidc/auth`,
    token_endpoint: `${url}/oidc/token`,
    jwks_uri: `${url}/oidc/jwks`,
  })
  const discovery = (change: object = {}) => ({
    '/oidc/.well-known/openid-configuration': (response: ServerResponse, url: string) =>
      void response.end(JSON.stringify({ ...metadata(url), ...change })),
  })
  const form = (action: string) => `<form method=post action="${action}"><input type=password name=p></form>`

  test.each([
    ['an issuer that calls itself another', discovery({ issuer: 'https://id.test/oidc' }), 'says that it is'],
    ['an endpoint elsewhere', discovery({ authorization_endpoint: 'https://evil.test/auth' }), 'no password is sent'],
    [
      'a form that leads elsewhere',
      { ...discovery(), '/oidc/auth': page(form('https://evil.test/')) },
      'leads to another host',
    ],
    [
      'a redirect elsewhere',
      { ...discovery(), '/oidc/auth': redirect(303, 'https://evil.test/sign-in') },
      'goes on at https://evil.test',
    ],
    [
      'a redirect that would repeat the form',
      { ...discovery(), '/oidc/auth': page(form('/again')), '/again': redirect(307, '/oidc/auth') },
      'answered 307 to a form',
    ],
    ['redirects without end', { ...discovery(), '/oidc/auth': redirect(302, '/oidc/auth') }, 'is not over'],
    [
      'an answer of another request',
      { ...discovery(), '/oidc/auth': redirect(303, `${callback}&state=x&code=y`) },
      'another state',
    ],
  ])('%s', async (_, pages, reason) => {
    const { outcome, posted } = await found(pages)
    expect(outcome).toContain(reason)
    expect(posted.filter((path) => path !== '/again')).toEqual([])
  })
})

function page(body: string) {
  return (response: ServerResponse) => void response.writeHead(200, { 'content-type': 'text/html' }).end(body)
}

function redirect(status: number, location: string) {
  return (response: ServerResponse) => void response.writeHead(status, { location }).end()
}

/** With pages of the sign-in and of the consent. */
const startIssuer = async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey, jwk } = await generateClientKey()
  const { key_ops: _, ...secret } = await crypto.subtle.exportKey('jwk', privateKey as never)
  const signing = { ...jwk, ...secret, use: 'sig' }
  const redirects = { redirect_uris: [callback], grant_types: ['authorization_code', 'refresh_token'] }
  const provider = new Provider(url, {
    clients: [
      { client_id: 'spa', token_endpoint_auth_method: 'none', ...redirects },
      { client_id: web.id, client_secret: web.secret, ...redirects },
    ],
    jwks: { keys: [signing] },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['keys-of-a-test'] },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/sign-in/${uid}` },
    features: {
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'read:orders',
          audience: orders,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    if (request.url!.startsWith('/sign-in/')) void servePage(provider, request, response)
    else void answer(request, response)
  })
  return {
    url,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const servePage = async (provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { uid, prompt, params, grantId, session } = await provider.interactionDetails(request, response)
  const send = (status: number, title: string, fields: string) =>
    void response
      .writeHead(status, { 'content-type': 'text/html; charset=utf-8' })
      .end(`<!doctype html><title>${title}</title><form method="post" action="/sign-in/${uid}">
        <input type="hidden" name="csrf" value="&quot;${uid}&quot;">${fields}</form>`)
  const signInFields = `<input name="identifier"><input type="password" name="password">
    <input type="checkbox" name="keep" value="yes"><button name="choice" value="cancel">Cancel</button>
    <button name="choice" value="sign_in">Sign in</button>`
  if (request.method === 'GET') {
    if (prompt.name === 'login') return send(200, 'Sign in', signInFields)
    return send(
      200,
      'Consent',
      `Allow ${String(params['client_id'])}? <button name="choice" value="deny">No</button><button name="choice" value="allow">Yes</button>`,
    )
  }
  const form = new URLSearchParams(await text(request))
  if (form.get('csrf') !== `"${uid}"` || request.headers.origin !== `http://${request.headers.host}`)
    return void response.writeHead(403).end()
  if (form.get('choice') === 'sign_in') {
    if (form.get('password') !== password)
      return send(200, 'Error: Sign in', `<p role="alert">The name or the password is wrong.</p>${signInFields}`)
    return provider.interactionFinished(request, response, { login: { accountId: form.get('identifier')! } })
  }
  if (form.get('choice') !== 'allow') return void response.writeHead(400).end()
  const grant = grantId
    ? (await provider.Grant.find(grantId))!
    : new provider.Grant({ accountId: session!.accountId, clientId: String(params['client_id']) })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(orders, 'read:orders')
  const consent = { grantId: await grant.save() }
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true })
}
