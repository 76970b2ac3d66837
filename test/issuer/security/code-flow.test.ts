import { createHmac } from 'node:crypto'
import { request as send } from 'node:http'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateClientKey } from '../../support/client-keys.ts'
import { type CodeFlow, createCodeFlow, parametersOf, signedOut } from '../../support/code-flow.ts'
import { accessTokenType, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** Attempts to get more out of the code flow than it gives, all by HTTP. */

let issuer: TestIssuer
let flow: CodeFlow
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  flow = createCodeFlow(issuer)
  client = await flow.createClient()
})
afterAll(() => issuer.close())

const sessionsOf = (userId: string) => issuer.sql('SELECT id FROM sessions WHERE user_id = $1', [userId])

test('neither a code nor a token passes for a session, a stored request or each other', async () => {
  const [person, browser] = [await flow.createPerson(), flow.browser()]
  const code = await flow.signIn(browser, client, person)
  const { body } = await flow.redeem(client, await flow.signIn(flow.browser(), client, person))
  for (const value of [code, body.access_token, body.refresh_token]) {
    const stranger = flow.browser()
    for (const name of ['session', 'browser', 'device']) stranger.cookies.set(`surrogate_${name}`, value)
    expect(parametersOf(await flow.ask(stranger, client, { prompt: 'none' }))).toMatchObject({
      error: 'login_required',
    })
    for (const kind of ['urn:ietf:params:oauth:request_uri:', 'urn:surrogate:stored:']) {
      const asked = formOf({ client_id: client.id, request_uri: kind + value })
      expect((await stranger.get(`${issuer.issuer}/auth?${asked}`)).status).toBe(400)
    }
  }
  const session = browser.cookies.get('surrogate_session')!
  expect(await flow.redeem(client, session)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(await flow.refresh(client, session)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(await flow.userinfo(session)).toBe(401)
  expect(await flow.redeem(client, code)).toMatchObject({ status: 200 })
})

test('no bearer token opens a session, and an exchange gives neither an ID token nor a refresh token', async () => {
  const [customer, agent] = [await flow.createPerson(), await flow.createPerson()]
  const web = await issuer.createApplication()
  const exchanged = await issuer.exchange(web, await issuer.subjectToken(customer.id), {
    scope: 'openid offline_access',
    actor_token: await issuer.actorToken(web, agent.id),
    actor_token_type: accessTokenType,
  })
  expect(exchanged.status).toBe(200)
  expect(Object.keys(exchanged.body)).not.toEqual(expect.arrayContaining(['id_token']))
  expect(Object.keys(exchanged.body)).not.toEqual(expect.arrayContaining(['refresh_token']))
  const headers = { authorization: `Bearer ${exchanged.body.access_token}` }
  const browser = flow.browser()
  const none = await browser.send(flow.authorizationUrl(client, { prompt: 'none' }), { headers })
  expect(parametersOf(none)).toMatchObject({ error: 'login_required' })
  const page = await browser.send(flow.authorizationUrl(client), { headers })
  expect((await browser.send(page.location!, { headers })).forms[0]?.names).toContain('password')
  expect((await browser.send(`${issuer.issuer}/session/end`, { headers })).status).toBe(200)
  expect([...browser.cookies.keys()]).toEqual(['surrogate_browser'])
  expect(await sessionsOf(customer.id)).toEqual([])
})

test('support that acts for an owner gets no permission of the Management API', async () => {
  const owner = await flow.createPerson()
  await issuer.sql(`INSERT INTO roles (id, name, description, type) VALUES ('owners', 'Owners', '', 'User')`)
  await issuer.sql(
    `INSERT INTO role_scopes (role_id, scope_id) SELECT 'owners', s.id FROM scopes s JOIN resources r ON r.id = s.resource_id
     WHERE r.indicator = $1`,
    [issuer.managementResource],
  )
  await issuer.sql(`INSERT INTO user_roles (user_id, role_id) VALUES ($1, 'owners')`, [owner.id])
  const web = await issuer.createApplication()
  const answer = await issuer.exchange(web, await issuer.subjectToken(owner.id), {
    resource: issuer.managementResource,
    scope: 'all users',
  })
  expect(answer).toMatchObject({ status: 200, body: { scope: '' } })
  expect((await issuer.api('GET', '/users', undefined, { token: answer.body.access_token })).status).toBe(403)
})

describe('a consent counts only', () => {
  test('from our own page, with its own value, by the browser that it was shown to', async () => {
    const [person, browser, other] = [await flow.createPerson(), flow.browser(), flow.browser()]
    const partner = await flow.createClient({ type: 'SPA', isThirdParty: true })
    const page = await browser.submit(await flow.ask(browser, partner), flow.credentials(person))
    const foreign = await flow.ask(other, partner)
    const { fields, action } = page.forms.find(({ names }) => names.includes('choice'))!
    const { origin } = new URL(issuer.baseUrl)
    const sent = async (from: typeof browser, values: Record<string, string>, headers: Record<string, string>) => {
      const body = formOf({ ...fields, choice: 'allow', ...values })
      return (await from.send(action, { method: 'POST', body, headers })).status
    }
    expect(await sent(browser, {}, { origin: 'https://evil.example' })).toBe(403)
    expect(await sent(browser, {}, { origin: 'null', 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await sent(browser, { csrf: '' }, { origin })).toBe(403)
    expect(await sent(browser, { csrf: foreign.forms[0]!.fields['csrf']! }, { origin })).toBe(403)
    expect(await sent(other, {}, { origin })).toBe(400)
    expect(await issuer.sql('SELECT FROM consents WHERE user_id = $1', [person.id])).toEqual([])
    expect(await sent(browser, {}, { origin })).toBe(303)
  })
})

test('a hint that somebody else signed, or nobody, or with our public key, signs nobody out', async () => {
  const [person, browser] = [await flow.createPerson(), flow.browser()]
  const { body } = await flow.redeem(client, await flow.signIn(browser, client, person))
  const [head, payload, signature] = body.id_token.split('.') as [string, string, string]
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const header = JSON.parse(Buffer.from(head, 'base64url').toString())
  const { privateKey } = await generateClientKey('ES256')
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [published] = (await request(`${issuer.issuer}/jwks`)).body.keys
  const symmetric = `${encoded({ ...header, alg: 'HS256' })}.${payload}`
  const hints = [
    await new SignJWT(claims).setProtectedHeader(header).sign(privateKey),
    `${encoded({ ...header, alg: 'none' })}.${payload}.`,
    `${symmetric}.${createHmac('sha256', JSON.stringify(published)).update(symmetric).digest('base64url')}`,
    `${head}.${encoded({ ...claims, sub: 'another' })}.${signature}`,
    body.access_token,
    body.refresh_token,
  ]
  for (const id_token_hint of hints) {
    const answer = await browser.send(
      `${issuer.issuer}/session/end?${formOf({ id_token_hint, post_logout_redirect_uri: signedOut })}`,
    )
    expect([answer.status, answer.location]).toEqual([400, undefined])
  }
  expect(parametersOf(await flow.ask(browser, client, { prompt: 'none' }))).toHaveProperty('code')
})

test('every page of the issuer, of whatever status, may be framed, kept and scripted by nobody', async () => {
  const browser = flow.browser()
  const { url } = await flow.ask(browser, client)
  const [person, signedIn] = [await flow.createPerson(), flow.browser()]
  await flow.signIn(signedIn, client, person)
  const pages = [
    await browser.send(url),
    await browser.send(url, { method: 'POST' }),
    await flow.browser().send(url),
    await browser.send('/sign-in'),
    await browser.send(`/sign-in/${'0'.repeat(21)}`),
    await browser.send(`${issuer.issuer}/auth`),
    await browser.send(`${issuer.issuer}/auth?client_id=${client.id}&redirect_uri=https://evil.example`),
    await browser.send(`${issuer.issuer}/session/end`),
    await browser.send(`${issuer.issuer}/session/end?id_token_hint=x`),
    await browser.send(`${issuer.issuer}/session/end/confirm`, { method: 'POST' }),
    await signedIn.send(`${issuer.issuer}/session/end`),
    await signedIn.send(flow.authorizationUrl(client, { response_mode: 'form_post', prompt: 'none' })),
  ]
  for (const { headers, status, url: address } of pages) {
    const at = `${status} ${address}`
    expect(headers.get('content-type'), at).toBe('text/html; charset=utf-8')
    expect(Object.fromEntries(headers), at).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; .*base-uri 'none'; .*frame-ancestors 'none'/,
      ),
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': expect.stringMatching(/^(same-origin|no-referrer)$/),
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': expect.any(String),
    })
    expect(headers.get('content-security-policy'), at).not.toContain('unsafe')
  }
})

test('a megabyte of cookies, or two hundred, or ones that cannot be read, are refused or left alone', async () => {
  const { hostname, port, pathname, search } = new URL(flow.authorizationUrl(client))
  const statusWith = (cookie: string) =>
    new Promise<number | undefined>((resolve) => {
      const asking = send({ hostname, port, path: pathname + search, headers: { cookie } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      // The server may hang up before everything is sent.
      asking.on('error', () => resolve(431))
      asking.end()
    })
  expect(await statusWith(`surrogate_session=${'x'.repeat(1_000_000)}`)).toBe(431)
  expect(await statusWith(Array.from({ length: 200 }, (_, n) => `c${n}=${n}`).join('; '))).toBe(303)
  for (const value of ['%00', '%', '"', '\u00ff', '=;=', ''])
    expect(await statusWith(`surrogate_session=${value}; surrogate_browser=${value}`), value).toBe(303)
  expect(issuer.logged()).not.toContain('"level":"error"')
})

test('over https cookies are bound to the host, and those of other names, as a subdomain could set them, are none', async () => {
  const secure = await startTestIssuer({ config: { baseUrl: 'https://login.example.test' } })
  try {
    const own = createCodeFlow(secure)
    const [shop, person] = [await own.createClient(), await own.createPerson()]
    const cookies = new Map<string, string>()
    const lines: string[] = []
    const visit = async (path: string, init: RequestInit = {}) => {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const answer = await fetch(secure.url + path, {
        redirect: 'manual',
        ...init,
        headers: { cookie, ...init.headers },
      })
      for (const line of answer.headers.getSetCookie()) {
        lines.push(line)
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
        cookies.set(name!, value!)
      }
      return { text: await answer.text(), location: answer.headers.get('location') ?? '' }
    }
    const ask = own.authorizationUrl(shop).slice('https://login.example.test'.length)
    const { location } = await visit(ask)
    const { text } = await visit(location)
    const csrf = /name="csrf" value="([^"]*)"/.exec(text)![1]!
    const origin = 'https://login.example.test'
    const body = formOf({ csrf, ...own.credentials(person) })
    expect((await visit(location, { method: 'POST', headers: { origin }, body })).location).toContain('code=')
    const attributes = 'Path=/; HttpOnly; SameSite=Lax; Secure'
    expect(lines.map((line) => line.replace(/=[\w-]{43};/, '=…;'))).toEqual([
      `__Host-surrogate_browser=…; ${attributes}`,
      `__Host-surrogate_session=…; ${attributes}`,
      `__Host-surrogate_device=…; ${attributes}; Max-Age=34560000`,
    ])
    const none = ask.replace('prompt=consent', 'prompt=none')
    expect((await visit(none)).location).toContain('code=')
    const session = cookies.get('__Host-surrogate_session')!
    cookies.clear()
    for (const name of ['surrogate_session', '__Secure-surrogate_session', '__host-surrogate_session'])
      cookies.set(name, session)
    expect((await visit(none)).location).toContain('error=login_required')
  } finally {
    await secure.close()
  }
})
