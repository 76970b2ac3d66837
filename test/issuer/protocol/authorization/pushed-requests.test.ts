import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../../issuer/tokens/token-digest.ts'
import { newId } from '../../../../platform/ids.ts'
import type { Answer, FormValues } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import {
  type AuthorizationServer,
  answered,
  newBrowser,
  rightRequest,
  startAuthorizationServer,
} from './authorization-server.ts'

let server: AuthorizationServer
let client: TestApplication

beforeAll(async () => {
  server = await startAuthorizationServer()
  client = await server.createClient()
})
afterAll(() => server.close())

beforeEach(() => {
  server.begun.length = 0
  server.leadTo({ kind: 'page', location: '/sign-in/1', setCookies: [] })
})

const right = (more?: FormValues) => rightRequest(client, more)
const browserCookie = (value: string) => ({ cookie: `surrogate_browser=${value}` })

const pushed = async (more?: FormValues): Promise<string> => {
  const answer = await server.push(client, right(more))
  expect(answer).toMatchObject({ status: 201 })
  return answer.body.request_uri
}
const use = (requestUri: string, browser?: string, more: FormValues = {}) =>
  server.get({ client_id: client.id, request_uri: requestUri, ...more }, browser ? browserCookie(browser) : {})

const expectPage = (answer: Answer) => {
  expect({ status: answer.status, location: answer.headers.get('location') }).toEqual({ status: 400, location: null })
  expect(answer.headers.getSetCookie()).toEqual([])
}

describe('a request that is sent ahead', () => {
  test('is used under its request_uri, whatever else the browser brings', async () => {
    const answer = await server.push(client, right({ nonce: 'n' }))
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toEqual({
      request_uri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/),
      expires_in: 60,
    })
    const more = {
      state: 'other',
      nonce: 'other',
      scope: 'phone',
      redirect_uri: 'https://evil.test',
      prompt: ['a', 'b'],
    }
    const used = await use(answer.body.request_uri, newBrowser(), more)
    expect(used.headers.get('location')).toBe('/sign-in/1')
    expect(server.begun[0]?.request).toMatchObject({
      state: 'a-state',
      nonce: 'n',
      scopes: ['openid'],
      redirectUri: 'https://shop.test/cb',
      prompts: [],
      pushedRequest: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  test('stands in the database so that only its request_uri opens it, without what proved the client', async () => {
    const requestUri = await pushed({ login_hint: 'zebra@animals.test' })
    const rows = JSON.stringify(await server.issuer.sql('SELECT *, digest::text, browser::text FROM pushed_requests'))
    for (const text of ['zebra', client.secret!, requestUri.slice(-43)]) expect(rows).not.toContain(text)
    expect(server.logged()).not.toContain('zebra')
  })

  test('belongs to the first browser, which may come again', async () => {
    const requestUri = await pushed()
    const [first, second] = [newBrowser(), newBrowser()]
    expect((await use(requestUri, first)).status).toBe(303)
    expectPage(await use(requestUri, second))
    expectPage(await use(requestUri))
    expect((await use(requestUri, first)).status).toBe(303)
    expect(server.begun.map(({ browser }) => browser)).toEqual([first, first])
  })

  test('gives a browser without a cookie one to be known by', async () => {
    const requestUri = await pushed()
    const answer = await use(requestUri)
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(/^surrogate_browser=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
    const value = cookie.slice('surrogate_browser='.length, 'surrogate_browser='.length + 43)
    expect(server.begun[0]?.browser).toBe(value)
    expect((await use(requestUri, value)).headers.getSetCookie()).toEqual([])
    expectPage(await use(requestUri))
  })

  test('is opened by one of many browsers that come at once', async () => {
    const requestUri = await pushed()
    const answers = await Promise.all(Array.from({ length: 20 }, () => use(requestUri, newBrowser())))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
  })

  test('is used up when its interaction has led back, and by a code at once', async () => {
    const [requestUri, browser] = [await pushed(), newBrowser()]
    await use(requestUri, browser)
    await server.issuer.sql(
      `INSERT INTO interactions (id, browser, address, client_id, request, expires_at, finished_at)
       VALUES ($1, $2, '127.0.0.1', $3, $4, now() + interval '1 hour', NULL)`,
      [newId(), tokenDigest('browser', browser), client.id, JSON.stringify(server.begun[0]?.request)],
    )
    expect((await use(requestUri, browser)).status).toBe(303)
    await server.issuer.sql('UPDATE interactions SET finished_at = now()')
    expectPage(await use(requestUri, browser))

    const another = await pushed()
    server.leadTo({ kind: 'authorized', code: 'the-code', setCookies: [] })
    expect(answered(await use(another, browser))).toMatchObject({ code: 'the-code' })
    expectPage(await use(another, browser))
  })

  test('waits a minute', async () => {
    const requestUri = await pushed()
    const [row] = await server.issuer.sql<{ seconds: number }>(
      `SELECT extract(epoch FROM expires_at - now())::float8 AS seconds FROM pushed_requests
       WHERE used_at IS NULL ORDER BY created_at DESC LIMIT 1`,
    )
    expect(row?.seconds).toBeGreaterThan(50)
    expect(row?.seconds).toBeLessThanOrEqual(60)
    await server.issuer.sql(`UPDATE pushed_requests SET expires_at = now()`)
    expectPage(await use(requestUri, newBrowser()))
  })

  test('is of no use to another client, or to nobody', async () => {
    const requestUri = await pushed()
    const other = await server.createClient()
    expectPage(await server.get({ client_id: other.id, request_uri: requestUri }, browserCookie(newBrowser())))
    expectPage(await server.get({ request_uri: requestUri }, browserCookie(newBrowser())))
    expectPage(await server.get({ client_id: [client.id, client.id], request_uri: requestUri }))
    expectPage(await use(`${requestUri.slice(0, -1)}${requestUri.endsWith('A') ? 'B' : 'A'}`, newBrowser()))
    expectPage(await use(requestUri.replace('ietf:params:oauth:request_uri', 'surrogate:stored'), newBrowser()))
    expect((await use(requestUri, newBrowser())).status).toBe(303)
  })

  test('is checked again when it is used', async () => {
    const gone = await server.createClient()
    const { body } = await server.push(gone, rightRequest(gone))
    await server.issuer.sql(`UPDATE applications SET oidc_client_metadata = '{}' WHERE id = $1`, [gone.id])
    expectPage(
      await server
        .get({ client_id: gone.id, request_uri: body.request_uri }, browserCookie(newBrowser()))
        .then((answer) => answer),
    )
  })
})

describe('sending ahead', () => {
  test.each<[string, FormValues]>([
    ['invalid_request', { redirect_uri: 'https://evil.test/cb' }],
    ['invalid_request', { redirect_uri: undefined }],
    ['invalid_request', { request_uri: 'urn:ietf:params:oauth:request_uri:x' }],
    ['request_not_supported', { request: 'x' }],
    ['invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
    ['invalid_request', { code_challenge_method: 'plain' }],
    ['unsupported_response_type', { response_type: 'token' }],
    ['invalid_target', { resource: 'https://nowhere.test' }],
    ['invalid_request', { nonce: ['1', '2'] }],
    ['invalid_request', { client_id: ['1', '2'] }],
  ])('is refused with %s for %o', async (error, parameters) => {
    const answer = await server.push(client, right(parameters))
    expect(answer).toMatchObject({ status: 400, body: { error, code: `oidc.${error}` } })
  })

  test('needs the proof that the token endpoint needs', async () => {
    const refused = { status: 401, body: { error: 'invalid_client' } }
    expect(await server.push({ id: client.id, secret: 'wrong' }, right())).toMatchObject(refused)
    expect(await server.push({ id: client.id }, right())).toMatchObject(refused)
    expect(await server.push({ id: 'nobody' }, right({ client_id: 'nobody' }))).toMatchObject(refused)
    const page = await server.createClient({ type: 'SPA' })
    expect(await server.push(page, rightRequest(page))).toMatchObject({ status: 201 })
  })

  test('is for applications that people sign in to', async () => {
    const machine = await server.createClient({ type: 'MachineToMachine' })
    const answer = await server.push(machine, rightRequest(machine))
    expect(answer).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  })

  test('is the only way where the application says so', async () => {
    const careful = await server.createClient({ custom: { requirePar: true } })
    expectPage(await server.get(rightRequest(careful)))
    expect(answered(await server.get(right({ request_uri: 'https://shop.test/r' })))).toMatchObject({
      error: 'request_uri_not_supported',
    })
    const { body } = await server.push(careful, rightRequest(careful))
    const answer = await server.get({ client_id: careful.id, request_uri: body.request_uri })
    expect(answer.headers.get('location')).toBe('/sign-in/1')
    // A page of another site is not the client.
    const posted = await server.post(rightRequest(careful), { 'sec-fetch-site': 'cross-site' })
    const again = await fetch(server.url + posted.headers.get('location'), { redirect: 'manual' })
    expect(again.status).toBe(400)
  })
})

describe('what a page of another site posts', () => {
  const foreign: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site', origin: 'https://shop.test' },
    { origin: 'https://shop.test' },
    { origin: 'null' },
  ]

  test.each(foreign)('comes again by GET, with cookies, once: %o', async (headers) => {
    const posted = await server.post(right({ nonce: 'n' }), headers)
    expect(posted.status).toBe(303)
    expect(posted.headers.getSetCookie()).toEqual([])
    expect(posted.headers.get('cache-control')).toBe('no-store')
    const location = posted.headers.get('location')!
    expect(location).toMatch(
      new RegExp(`^/oidc/auth\\?client_id=${client.id}&request_uri=urn%3Asurrogate%3Astored%3A[\\w-]{43}$`),
    )
    expect(server.begun).toEqual([])

    const browser = newBrowser()
    const once = () => fetch(server.url + location, { redirect: 'manual', headers: browserCookie(browser) })
    const answer = await once()
    expect(answer.headers.get('location')).toBe('/sign-in/1')
    expect(server.begun).toMatchObject([{ browser, request: { nonce: 'n', state: 'a-state' } }])
    expect(server.begun[0]?.request.pushedRequest).toBeUndefined()
    expect((await once()).status).toBe(400)
  })

  test('is for the client that it named, and for a minute', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' }
    const other = await server.createClient()
    const first = (await server.post(right(), headers)).headers.get('location')!
    expect((await fetch(server.url + first.replace(client.id, other.id), { redirect: 'manual' })).status).toBe(400)
    const second = (await server.post(right(), headers)).headers.get('location')!
    await server.issuer.sql(`UPDATE pushed_requests SET expires_at = now() WHERE kind = 'posted'`)
    expect((await fetch(server.url + second, { redirect: 'manual' })).status).toBe(400)
  })

  test('is refused at once when it names no client', async () => {
    expectPage(await server.post(right({ client_id: undefined }), { 'sec-fetch-site': 'cross-site' }))
  })

  test('may be the request_uri of what its client sent ahead, which is not kept twice', async () => {
    const sent = { client_id: client.id, request_uri: await pushed({ nonce: 'ahead' }) }
    const { headers } = await server.post(sent, { 'sec-fetch-site': 'cross-site' })
    expect(headers.get('location')).toBe(`/oidc/auth?${new URLSearchParams(sent)}`)
    expect(headers.getSetCookie()).toEqual([])
    expect((await use(sent.request_uri, newBrowser())).headers.get('location')).toBe('/sign-in/1')
    expect(server.begun).toMatchObject([{ request: { nonce: 'ahead' } }])
  })

  test('cannot fill the database', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' }
    const statuses = new Set<number>()
    for (let count = 0; count < 400 && !statuses.has(429); count += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => server.post(right(), headers)))
      for (const { status } of answers) statuses.add(status)
    }
    expect(statuses).toContain(429)
  })
})
