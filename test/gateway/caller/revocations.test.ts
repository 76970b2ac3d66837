import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createRevocationIndex } from '../../../gateway/caller/revocation-index.ts'
import type { VerifiedClaims } from '../../../platform/jwt/verify.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { until } from '../../support/until.ts'

describe('a gateway that follows its issuer', () => {
  let issuer: TestIssuer
  let gateway: TestGateway
  let api: string
  let app: TestApplication
  beforeAll(async () => {
    issuer = await startTestIssuer()
    api = await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
    app = await issuer.createApplication()
    const reader = await issuer.createMachine(issuer.managementResource, ['revocations'])
    gateway = await startTestGateway({
      config: () => ({
        issuers: [
          { issuer: issuer.issuer, client: { id: reader.id, secret: reader.secret }, revocations: { mode: 'feed' } },
        ],
      }),
    })
    // Keys and feed are each asked for again after up to 5 s without an answer, which a busy machine can need more than
    // once.
    await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }), 50_000)
  })
  afterAll(async () => {
    await gateway.close()
    await issuer.close()
  })

  const newUser = async () => {
    const user = await issuer.createUser()
    await issuer.grantUser(user.id, api, ['read:orders'])
    return user.id
  }
  const impersonate = async (subject: string, actor?: string): Promise<string> => {
    const answer = await issuer.exchange(app, await issuer.subjectToken(subject), {
      resource: api,
      scope: 'read:orders',
      ...(actor && {
        actor_token: await issuer.actorToken(app, actor),
        actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      }),
    })
    expect(answer.status).toBe(200)
    return answer.body.access_token
  }
  const statusOf = async (token: string) => (await gateway.call('/orders/1', { token })).status
  const sidOf = async (token: string) => String((await issuer.verify(token, api))['sid'])

  test('ending an impersonation session ends its token at the gateway, and no other', async () => {
    const user = await newUser()
    const [ended, other] = [await impersonate(user), await impersonate(user)]
    // Verified and cached by now.
    expect([await statusOf(ended), await statusOf(other)]).toEqual([200, 200])
    expect((await issuer.api('POST', `/impersonations/${await sidOf(ended)}/end`)).status).toBe(204)
    await until(async () => expect(await statusOf(ended)).toBe(401))
    const answer = await gateway.call('/orders/1', { token: ended })
    expect(answer.headers.get('www-authenticate')).toContain(
      'Bearer error="invalid_token", error_description="The token was revoked."',
    )
    expect(await answer.json()).toMatchObject({ code: 'invalid_token', detail: 'The token was revoked.' })
    expect(await statusOf(other)).toBe(200)
  })

  test('suspending an actor ends what that person does as others; those others keep their own tokens', async () => {
    const [subject, actor] = [await newUser(), await newUser()]
    const [acting, own] = [await impersonate(subject, actor), await impersonate(subject)]
    expect([await statusOf(acting), await statusOf(own)]).toEqual([200, 200])
    await issuer.api('PATCH', `/users/${actor}/is-suspended`, { isSuspended: true })
    await until(async () => expect(await statusOf(acting)).toBe(401))
    expect(await statusOf(own)).toBe(200)
  })

  test('deleting a user ends every token for that user', async () => {
    const user = await newUser()
    const token = await impersonate(user)
    expect(await statusOf(token)).toBe(200)
    await issuer.api('DELETE', `/users/${user}`)
    await until(async () => expect(await statusOf(token)).toBe(401))
  })

  test('a client that revokes its token (RFC 7009) can use it no more', async () => {
    const machine = await issuer.createMachine(api, ['read:orders'])
    const token = await issuer.clientToken(machine, api, 'read:orders')
    expect(await statusOf(token)).toBe(200)
    const url = `${issuer.url}/oidc/token/revocation`
    await request(url, { method: 'POST', headers: { authorization: basic(machine) }, body: formOf({ token }) })
    await until(async () => expect(await statusOf(token)).toBe(401))
  })

  test('deleting an application ends its tokens', async () => {
    const machine = await issuer.createMachine(api, ['read:orders'])
    const token = await issuer.clientToken(machine, api, 'read:orders')
    expect(await statusOf(token)).toBe(200)
    await issuer.api('DELETE', `/applications/${machine.id}`)
    await until(async () => expect(await statusOf(token)).toBe(401))
  })
})

/** A feed whose answers the test decides; without one it waits, as a feed without news does. */
const startFeed = async () => {
  const waiting: (() => void)[] = []
  const feed = {
    url: '',
    asked: [] as string[],
    authorization: [] as (string | undefined)[],
    /** By the query of the request. Undefined: no answer yet. */
    answer: (_query: URLSearchParams): { status?: number; body: unknown } | undefined => undefined,
    /** Lets those that wait look at `answer` again. */
    changed: () => {
      for (const look of waiting.splice(0)) look()
    },
  }
  const server = createServer((incoming, response) => {
    const query = new URL(incoming.url!, 'http://feed').searchParams
    feed.asked.push(query.toString())
    feed.authorization.push(incoming.headers.authorization)
    const look = () => {
      const answer = feed.answer(query)
      if (!answer) return void waiting.push(look)
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer.body))
    }
    look()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  feed.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/revocations`
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return feed
}

const inADay = () => Math.floor(Date.now() / 1000) + 86_400
const nothing = (cursor: number) => ({ body: { entries: [], cursor, more: false } })

describe('a feed that fails', () => {
  const start = async (feed: { url: string }, revocations: object = {}) => {
    let ahead = 0
    const gateway = await startTestGateway({
      now: () => new Date(Date.now() + ahead),
      config: ({ issuer }) => ({
        issuers: [
          {
            issuer: issuer.issuer,
            client: { id: 'gate way', secret: 'se:cret' },
            revocations: { mode: 'feed', url: feed.url, maxStale: '5m', ...revocations },
          },
        ],
      }),
    })
    onTestFinished(() => gateway.close())
    const check = `gateway revocations ${gateway.issuer.issuer}`
    return {
      gateway,
      token: await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', jti: 'good', exp: inADay() }),
      revocationCheck: async () => (await gateway.health.ready()).checks[check]!,
      passTime: (ms: number) => {
        ahead += ms
      },
    }
  }

  test('the gateway is not ready, and serves no token, before it has read all that is revoked', async () => {
    const feed = await startFeed()
    const { gateway, token, revocationCheck } = await start(feed)
    await until(() => expect(feed.asked).toEqual(['wait=0']))
    expect(feed.authorization).toEqual([`Basic ${Buffer.from('gate+way:se%3Acret').toString('base64')}`])
    expect(await revocationCheck()).toMatchObject({ ok: false })
    const early = await until(async () => {
      const answer = await gateway.call('/orders/1', { token })
      expect(await answer.clone().json()).toMatchObject({ code: 'revocations_unavailable' })
      return answer
    })
    expect(early.status).toBe(503)
    expect((await gateway.call('/public/1')).status).toBe(200)

    // Two pages; ready after the second.
    const entry = (seq: number, value: string) => ({ seq, kind: 'jti', value, issuedBefore: null, expiresAt: inADay() })
    feed.answer = (query) => {
      if (!query.has('since')) return { body: { entries: [entry(1, 'first')], cursor: 1, more: true } }
      if (query.get('since') === '1') return { body: { entries: [entry(2, 'second')], cursor: 2, more: false } }
      return undefined
    }
    feed.changed()
    await until(async () => expect(await revocationCheck()).toEqual({ ok: true }))
    await until(() => expect(feed.asked).toEqual(['wait=0', 'wait=0&since=1', 'wait=25&since=2']))
    expect((await gateway.call('/orders/1', { token })).status).toBe(200)
    for (const jti of ['first', 'second']) {
      const revoked = await gateway.issuer.sign({ scope: 'read:orders', jti })
      expect((await gateway.call('/orders/1', { token: revoked })).status).toBe(401)
    }
  })

  test('a client without the permission keeps the gateway unready, and readyz says why', async () => {
    const feed = await startFeed()
    feed.answer = () => ({ status: 403, body: {} })
    const { gateway, revocationCheck } = await start(feed)
    await until(async () =>
      expect(await revocationCheck()).toEqual({
        ok: false,
        detail: `the revocations of ${gateway.issuer.issuer} have not been read yet: the client lacks the management permission "revocations"`,
      }),
    )
  })

  test('an issuer that is down is tolerated for maxStale, then its tokens are refused until it is back', async () => {
    const feed = await startFeed()
    feed.answer = (query) => (query.get('wait') === '0' ? nothing(7) : undefined)
    const { gateway, token, revocationCheck, passTime } = await start(feed)
    await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(200))

    feed.answer = () => ({ status: 500, body: {} })
    feed.changed()
    const { issuer } = gateway.issuer
    await until(async () =>
      expect(await revocationCheck()).toEqual({
        ok: true,
        detail: `the revocations of ${issuer} cannot be followed now: it answered 500`,
      }),
    )
    passTime(4 * 60_000)
    expect((await gateway.call('/orders/1', { token })).status).toBe(200)
    passTime(61_000)
    const refused = await gateway.call('/orders/1', { token })
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await refused.json()).toMatchObject({ code: 'revocations_unavailable' })
    expect(await revocationCheck()).toEqual({
      ok: true,
      detail: `the revocations of ${issuer} are too old, its tokens are refused: it answered 500`,
    })
    expect((await gateway.metrics.render()).text).toContain(`surrogate_gateway_revocations_stale{issuer="${issuer}"} 1`)

    // Back, and what was revoked meanwhile is known before anything is served again.
    feed.answer = (query) => {
      if (query.get('since') !== '7') return query.get('wait') === '0' ? nothing(8) : undefined
      const revoked = { seq: 8, kind: 'jti', value: 'meanwhile', issuedBefore: null, expiresAt: inADay() }
      return { body: { entries: [revoked], cursor: 8, more: false } }
    }
    await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(200))
    const meanwhile = await gateway.issuer.sign({ scope: 'read:orders', jti: 'meanwhile', exp: inADay() })
    expect((await gateway.call('/orders/1', { token: meanwhile })).status).toBe(401)
    expect(await revocationCheck()).toEqual({ ok: true })
  })

  test('what a person has signed in to is over within a second of its end, and nothing else of that person', async () => {
    const feed = await startFeed()
    feed.answer = (query) => (query.get('wait') === '0' ? nothing(1) : undefined)
    const { gateway, token } = await start(feed)
    await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(200))
    const signedIn = (sid: string) => gateway.issuer.sign({ scope: 'read:orders', sid, exp: inADay() })
    const [ended, other] = [await signedIn('ps_ended'), await signedIn('ps_other')]
    const statuses = async () =>
      Promise.all([ended, other].map(async (one) => (await gateway.call('/orders/1', { token: one })).status))
    expect(await statuses()).toEqual([200, 200])
    const entry = { seq: 2, kind: 'sid', value: 'ps_ended', issuedBefore: null, expiresAt: inADay() }
    feed.answer = (query) =>
      query.get('since') === '1' ? { body: { entries: [entry], cursor: 2, more: false } } : undefined
    feed.changed()
    await until(async () => expect(await statuses()).toEqual([401, 200]), 1_000)
  })

  test('whenStale: serve keeps serving, but never what is known to be revoked', async () => {
    const feed = await startFeed()
    const revoked = { seq: 1, kind: 'jti', value: 'bad', issuedBefore: null, expiresAt: inADay() }
    feed.answer = (query) =>
      query.get('wait') === '0' ? { body: { entries: [revoked], cursor: 1, more: false } } : undefined
    const { gateway, token, revocationCheck, passTime } = await start(feed, { whenStale: 'serve' })
    await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(200))
    passTime(3_600_000 / 2)
    expect((await gateway.call('/orders/1', { token })).status).toBe(200)
    const bad = await gateway.issuer.sign({ scope: 'read:orders', jti: 'bad', exp: inADay() })
    expect((await gateway.call('/orders/1', { token: bad })).status).toBe(401)
    expect((await revocationCheck()).detail).toContain('served all the same')
  })

  test.each([
    ['no JSON', 'not a page'],
    ['another shape', { entries: [{ kind: 'everything', value: 'x' }], cursor: 1, more: false }],
  ])('an answer that is %s is not taken for an empty feed', async (_name, body) => {
    const feed = await startFeed()
    feed.answer = () => ({ body })
    const { revocationCheck } = await start(feed)
    await until(async () =>
      expect((await revocationCheck()).detail).toContain('its answer is no page of a revocation feed'),
    )
    expect((await revocationCheck()).ok).toBe(false)
  })
})

describe('what an entry covers', () => {
  const token = (claims: Partial<VerifiedClaims>): VerifiedClaims => ({
    iss: 'https://issuer.test/oidc',
    sub: 'alice',
    aud: orders,
    iat: 1_000,
    exp: 2_000,
    ...claims,
  })
  const chain = { sub: 'bob', act: { sub: 'carol', act: { sub: 'dave' } } }

  test.each([
    ['a token id', { kind: 'jti', value: 't1' }, { jti: 't1' }, { jti: 't2' }],
    ['a session', { kind: 'sid', value: 's1' }, { sid: 's1' }, { sid: 's2' }],
    ['a sign-in', { kind: 'sid', value: 'ps_1' }, { sid: 'ps_1' }, { sid: 'ps_2' }],
    ['a client', { kind: 'client', value: 'c1', issuedBefore: 1_000 }, { client_id: 'c1' }, { client_id: 'c2' }],
    ['a subject', { kind: 'sub', value: 'alice', issuedBefore: 1_000 }, {}, { sub: 'erin' }],
    ['an actor', { kind: 'sub', value: 'bob', issuedBefore: 1_000 }, { act: chain }, { act: { sub: 'carol' } }],
    ['an actor behind others', { kind: 'sub', value: 'dave', issuedBefore: 1_000 }, { act: chain }, {}],
    ['tokens until a time', { kind: 'sub', value: 'alice', issuedBefore: 1_000 }, { iat: 1_000 }, { iat: 1_001 }],
    [
      'nothing of another kind',
      { kind: 'jti', value: 'alice' },
      { jti: 'alice' },
      { sid: 'alice', client_id: 'alice' },
    ],
  ] as const)('%s', (_name, entry, covered, free) => {
    const index = createRevocationIndex()
    index.add({ issuedBefore: null, expiresAt: 2_000, ...entry })
    expect([index.isRevoked(token(covered)), index.isRevoked(token(free))]).toEqual([true, false])
  })

  test('of several entries for one user the latest counts, in whatever order they come', () => {
    const index = createRevocationIndex()
    for (const issuedBefore of [1_000, 900]) {
      index.add({ kind: 'sub', value: 'alice', issuedBefore, expiresAt: issuedBefore + 1_000 })
    }
    index.prune(1_950)
    expect(index.isRevoked(token({ iat: 1_000 }))).toBe(true)
    index.prune(2_000)
    expect(index.size).toBe(0)
  })
})
