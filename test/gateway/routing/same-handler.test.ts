import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ProtectOptions, protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import type { PolicyInput } from '../../../policies/decide.ts'
import { ruleFolder } from '../../policies/rule-folder.ts'
import { askForDecision } from '../../support/forward-auth.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'

/**
 * What one handler of an API serves meets the same rules, however it is asked for. The API is a real Express 5 with its
 * defaults.
 */

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

/**
 * `/app/report` has a handler of its own, `/app/users/:id` tells what it got, everything else below `/app` another one.
 */
const api = () =>
  express()
    .all('/app/report', (request, response) => void response.json({ handler: 'report', url: request.url }))
    .all('/app/users/:id', (request, response) => void response.json({ handler: 'user', id: request.params['id'] }))
    .all('/app/*rest', (request, response) => void response.json({ handler: 'rest', url: request.url }))

const asExpress = { case: 'insensitive', trailingSlash: 'ignore' }

/** `/app/report` needs `admin`, all else below `/app` only `read`. */
const routes = [
  { id: 'report', path: '/app/report', audience: [orders], scopes: ['admin'], upstream: 'app' },
  { id: 'user', path: '/App/users/{id}', audience: [orders], scopes: ['read'], upstream: 'app' },
  { id: 'rest', path: '/app/**', audience: [orders], scopes: ['read'], upstream: 'app' },
]

const start = async (config: object = {}, upstream: object = {}) => {
  const inputs: PolicyInput[] = []
  const gateway = await startTestGateway({
    upstream: api(),
    policies: await recordingPolicies((input) => inputs.push(input)),
    config: ({ upstream: { url } }) => ({ upstreams: { app: { url, ...upstream } }, routes, ...config }),
  })
  return { gateway, inputs }
}

const answerOf = async (gateway: TestGateway, path: string, scope: string) => {
  const answer = await gateway.call(path, { scope })
  return answer.status === 200 ? await answer.json() : answer.status
}

const spellings = ['/app/report', '/app/report/', '/app/REPORT', '/APP/Report/', '/app/%52eport', '/app/rep%4Frt/']

describe('behind a gateway that knows what the API takes for the same', () => {
  let gateway: TestGateway
  let inputs: PolicyInput[]
  beforeAll(async () => {
    const started = await start({}, { pathEquality: asExpress })
    gateway = started.gateway
    inputs = started.inputs
  })
  afterAll(() => gateway.close())

  test.each(spellings)('%s needs what the route of its handler asks for', async (path) => {
    expect(await answerOf(gateway, path, 'read')).toBe(401)
    const canonical = path.replace('%52', 'R').replace('%4F', 'O')
    expect(await answerOf(gateway, path, 'admin')).toEqual({ handler: 'report', url: canonical })
  })

  test('other paths go where they went', async () => {
    expect(await answerOf(gateway, '/app/reports', 'read')).toEqual({ handler: 'rest', url: '/app/reports' })
    expect(await answerOf(gateway, '/app/report/1', 'read')).toEqual({ handler: 'rest', url: '/app/report/1' })
    expect(await answerOf(gateway, '/app/reports', 'admin')).toBe(401)
  })

  test('parameters stay as they were sent', async () => {
    expect(await answerOf(gateway, '/APP/Users/ABC/', 'read')).toEqual({ handler: 'user', id: 'ABC' })
    const { request, route } = inputs.at(-1)!
    expect(route).toMatchObject({ id: 'user', params: { id: 'ABC' } })
    expect(request).toMatchObject({
      path: '/APP/Users/ABC/',
      segments: ['APP', 'Users', 'ABC', ''],
      folded: { path: '/app/users/abc', segments: ['app', 'users', 'abc'] },
    })
  })

  test('rules about literals have one spelling to compare with, escapes in capitals', async () => {
    expect(await answerOf(gateway, '/app/Caf%c3%a9/%41/', 'read')).toMatchObject({ handler: 'rest' })
    expect(inputs.at(-1)!.request.folded).toEqual({
      path: '/app/caf%C3%A9/a',
      segments: ['app', 'café', 'a'],
    })
  })

  test('a preflight finds the route of the handler too', async () => {
    const { gateway: withPages } = await start(
      { routes: [{ ...routes[0], methods: ['GET'], cors: { origins: ['https://app.test'] } }] },
      { pathEquality: asExpress },
    )
    cleanup.push(withPages.close)
    const answer = await fetch(`${withPages.url}/APP/report/`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.test', 'access-control-request-method': 'GET' },
    })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([204, 'https://app.test'])
  })
})

test('where the API is not said to fold anything, paths are what they are', async () => {
  const { gateway, inputs } = await start()
  cleanup.push(gateway.close)
  expect(await answerOf(gateway, '/app/REPORT/', 'read')).toEqual({ handler: 'report', url: '/app/REPORT/' })
  const { path, segments, folded } = inputs.at(-1)!.request
  expect(folded).toEqual({ path, segments })
})

test('another proxy that asks gets the same decision, also about routes that name no upstream', async () => {
  const { gateway } = await start({
    trustedProxies: ['127.0.0.1'],
    forwardAuth: { dialect: 'traefik', pathEquality: asExpress },
    routes: routes.map(({ upstream: _, ...route }) => route),
  })
  cleanup.push(gateway.close)
  const bearer = async (scope: string) => ({ authorization: `Bearer ${await gateway.issuer.sign({ scope })}` })
  for (const path of spellings) {
    expect((await askForDecision(gateway, path, await bearer('read'))).status, path).toBe(401)
    expect((await askForDecision(gateway, path, await bearer('admin'))).status, path).toBe(200)
  }
})

describe('parameters of segments', () => {
  test.each(['/app/report;v=1', '/app;v=1/report', '/app/report;', '/app/report%3Bv=1', '/app/x;/y', '/app/a%3b'])(
    '%s is refused',
    async (path) => {
      const { gateway } = await start()
      cleanup.push(gateway.close)
      for (const scope of ['read', 'admin', 'read admin']) expect(await answerOf(gateway, path, scope)).toBe(400)
    },
  )

  test('are kept where a route says so, and never lead to a weaker one', async () => {
    const [report, user, rest] = routes
    const { gateway, inputs } = await start(
      { routes: [report, { ...user, matrixParameters: 'keep' }, { ...rest, matrixParameters: 'keep' }] },
      { pathEquality: asExpress },
    )
    cleanup.push(gateway.close)
    expect(await answerOf(gateway, '/app/users/A;v=1', 'read')).toEqual({ handler: 'user', id: 'A;v=1' })
    const { request, route } = inputs.at(-1)!
    expect(route.params).toEqual({ id: 'A;v=1' })
    expect(request).toMatchObject({
      path: '/app/users/A;v=1',
      segments: ['app', 'users', 'A;v=1'],
      folded: { path: '/app/users/a', segments: ['app', 'users', 'a'] },
    })
    expect(await answerOf(gateway, '/app/other;a=1/b%3Bc', 'read')).toMatchObject({ handler: 'rest' })
    expect(inputs.at(-1)!.request.folded).toEqual({ path: '/app/other/b', segments: ['app', 'other', 'b'] })
    for (const path of ['/app/report;v=1', '/app;v=1/REPORT%3B/', '/app/report;v=1/']) {
      expect(await answerOf(gateway, path, 'read'), path).toBe(400)
    }
    // What is left without its parameters is an empty segment, which some upstreams take away.
    for (const path of ['/app/;v=1/report', '/app/%3Bv/report', '/app/..;/report']) {
      expect(await answerOf(gateway, path, 'read'), path).toBe(400)
    }
  })

  test('a semicolon in the query is no parameter of a segment', async () => {
    const { gateway } = await start()
    cleanup.push(gateway.close)
    expect(await answerOf(gateway, '/app/x?a=1;b=2', 'read')).toEqual({ handler: 'rest', url: '/app/x?a=1;b=2' })
  })

  test('without a route is 404 as ever', async () => {
    const { gateway } = await start()
    cleanup.push(gateway.close)
    expect(await sendRaw(gateway.port, 'GET /none;v=1 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 404 /,
    )
  })
})

describe('inside protect()', () => {
  const rules = {
    'guard.rego': `package surrogate.gateway

# METADATA
# entrypoint: true
default decision := true

decision := false if input.request.folded.segments == ["app", "report"]
`,
  }

  const guarded = async (options: Partial<ProtectOptions> = {}) => {
    const issuer = await startTokenIssuer()
    const guard = protect({
      issuer: issuer.issuer,
      audience: orders,
      policies: await ruleFolder(rules),
      logger: silentLogger,
      ...options,
    })
    const server = express().use(guard, api()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanup.push(
      issuer.close,
      () => guard.close(),
      () => server.close(),
    )
    await guard.ready
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return async (path: string) => {
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${await issuer.sign()}` } })
      return answer.status === 200 ? await answer.json() : answer.status
    }
  }

  test('a rule about a literal holds for every spelling that Express takes for the same', async () => {
    const call = await guarded()
    for (const path of spellings) expect(await call(path), path).toBe(403)
    expect(await call('/app/users/ABC')).toEqual({ handler: 'user', id: 'ABC' })
    expect(await call('/app/report;v=1')).toBe(400)
  })

  test('an application with strict routing says so', async () => {
    const call = await guarded({ pathEquality: { trailingSlash: 'significant' }, matrixParameters: 'keep' })
    expect(await call('/app/REPORT')).toBe(403)
    expect(await call('/app/report/')).toMatchObject({ handler: 'report' })
    expect(await call('/app/users/A;v=1')).toEqual({ handler: 'user', id: 'A;v=1' })
  })
})
