import { afterEach, beforeEach, expect, test } from 'vitest'
import { type BackChannel, startBackChannel } from '../../support/back-channel.ts'
import { signedOut } from '../../support/code-flow.ts'
import { basic, formOf, request } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'

let channel: BackChannel
beforeEach(async () => {
  channel = await startBackChannel()
})
afterEach(() => channel.close())

const states = async () => (await channel.deliveries()).map(({ state }) => state)
const lost = () =>
  channel.issuer.sql<{ application_id: string; user_id: string; payload: object }>(
    `SELECT application_id, user_id, payload FROM logs WHERE key = 'BackChannelLogout'`,
  )
const event = 'http://schemas.openid.net/event/backchannel-logout'

test('signing out tells every application that knows the session, with its own sid, and nobody else', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay()
  const shop = await channel.client(`${url}/shop`)
  const partner = await channel.client(`${url}/partner`, { backchannelLogoutSessionRequired: true })
  const silent = await channel.client(undefined)
  const { person, browser, idToken, sids } = await channel.signIn([shop, partner, silent])
  expect((await channel.signOut(browser, idToken)).location).toBe(signedOut)
  // Known before the person was sent back.
  expect(received.map(({ path }) => path).toSorted()).toEqual(['/partner', '/shop'])
  const byPath = Object.fromEntries(received.map((one) => [one.path, one]))
  for (const [path, client, sid] of [
    ['/shop', shop, sids[0]],
    ['/partner', partner, sids[1]],
  ] as const) {
    const { token, header, claims, headers } = byPath[path]!
    expect(headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(header).toEqual({ alg: 'ES256', typ: 'logout+jwt', kid: expect.any(String) })
    expect(await channel.verify(token, client)).toEqual(claims)
    const iat = claims['iat'] as number
    expect(claims).toEqual({
      ...{ iss: channel.issuer.issuer, aud: client.id, sub: person.id, sid, iat, exp: iat + 120 },
      ...{ jti: expect.any(String), events: { [event]: {} } },
    })
  }
  await until(async () => expect(await states()).toEqual(['delivered', 'delivered']))
  expect(await lost()).toEqual([])
})

test('an application gets the algorithm of its ID tokens', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay()
  const client = await channel.client(url, { idTokenSignedResponseAlg: 'RS256' })
  const { browser, idToken } = await channel.signIn([client])
  await channel.signOut(browser, idToken)
  await until(() => expect(received).toHaveLength(1))
  expect(received[0]!.header.alg).toBe('RS256')
  await channel.verify(received[0]!.token, client)
})

test('logouts for which there is no key wait for one, and hold up no others', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay()
  const [without, client] = [
    await channel.client(`${url}/without`, { idTokenSignedResponseAlg: 'EdDSA' }),
    await channel.client(`${url}/with`),
  ]
  const { person, browser, idToken } = await channel.signIn([client])
  await channel.issuer.sql(
    `INSERT INTO logout_deliveries (authorization_id, user_id, client_id, next_attempt_at)
     SELECT 'ps_' || n, $1, $2, now() - interval '1 minute' FROM generate_series(1, 250) AS n`,
    [person.id, without.id],
  )
  await channel.signOut(browser, idToken)
  await until(() => expect(received.map(({ path }) => path)).toEqual(['/with']))
  const waiting = (await channel.deliveries()).filter(({ state }) => state === 'waiting')
  expect(waiting).toHaveLength(250)
  await channel.expire()
  await until(async () => expect(await lost()).toHaveLength(250))
  expect((await lost())[0]!.payload).toMatchObject({ attempts: 0, error: 'No attempt was made.' })
})

test('one that fails is told again with another token, and 204 will do; the database never holds one in clear', async () => {
  const { url, received } = await channel.receiver((_received, response, count) =>
    response.writeHead(count < 3 ? 503 : 204).end(),
  )
  const client = await channel.client(url)
  const { browser, idToken } = await channel.signIn([client])
  await channel.signOut(browser, idToken)
  // Nobody sends yet: the token waits, sealed.
  const [waiting] = await until(async () => {
    const rows = await channel.deliveries()
    expect(rows[0]?.sealed).toBeInstanceOf(Buffer)
    return rows
  })
  expect(waiting!.sealed!.toString('latin1')).not.toContain('eyJ')
  await channel.relay()
  await until(async () => expect(await states()).toEqual(['delivered']))
  expect(received).toHaveLength(3)
  expect(new Set(received.map(({ claims }) => claims['jti'])).size).toBe(3)
  expect(await channel.deliveries()).toMatchObject([{ attempts: 3, error: null, sealed: null }])
})

test('a 400 is an answer: no more attempts, and the audit trail says so', async () => {
  const { url, received } = await channel.receiver((_received, response) => response.writeHead(400).end())
  await channel.relay()
  const client = await channel.client(url)
  const { person, browser, idToken, sids } = await channel.signIn([client])
  await channel.signOut(browser, idToken)
  await until(async () => expect(await states()).toEqual(['failed']))
  expect(received).toHaveLength(1)
  const payload = { authorizationId: sids[0], attempts: 1, error: 'The receiver answered 400.' }
  expect(await lost()).toMatchObject([{ application_id: client.id, user_id: person.id, payload }])
})

test('nobody is led elsewhere, and who does not answer for long is given up', async () => {
  const { url, received } = await channel.receiver(({ path }, response) =>
    response.writeHead(path === '/elsewhere' ? 200 : 307, { location: '/elsewhere' }).end(),
  )
  await channel.relay()
  const client = await channel.client(url)
  const { browser, idToken } = await channel.signIn([client])
  await channel.signOut(browser, idToken)
  await until(async () => expect((await channel.deliveries())[0]!.attempts).toBeGreaterThan(2))
  await channel.expire()
  await until(async () => expect(await states()).toEqual(['failed']))
  expect(received.every(({ path }) => path === '/')).toBe(true)
  expect(await lost()).toMatchObject([{ payload: { error: 'The receiver answered 307.' } }])
})

test('an address that the relay may not reach is not reached, whatever was registered (T 128)', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay({ allowedNetworks: [] })
  const [literal, named] = [await channel.client(url), await channel.client(url.replace('127.0.0.1', 'localhost'))]
  const { browser, idToken } = await channel.signIn([literal, named])
  await channel.signOut(browser, idToken)
  await until(async () => {
    const rows = await channel.deliveries()
    expect(rows.map(({ error }) => error)).toEqual(
      [1, 2].map(() => expect.stringMatching(/allowed: it is a loopback address/)),
    )
  })
  expect(received).toEqual([])
})

test('a hundred applications that hang do not hold the person up, and those that answer are reached', async () => {
  const held: (() => void)[] = []
  const { url, received } = await channel.receiver(({ path }, response) => {
    if (Number(path.slice(1)) % 2 === 0) held.push(() => response.writeHead(200).end())
    else response.writeHead(200).end()
  })
  await channel.relay({ logoutTimeoutMs: 60_000, logoutLeaseMs: 120_000 })
  const clients = await Promise.all(Array.from({ length: 100 }, (_, index) => channel.client(`${url}/${index}`)))
  const { browser, idToken } = await channel.signIn(clients)
  expect((await channel.signOut(browser, idToken)).location).toBe(signedOut)
  // All were asked, half of them have not answered yet, and the person is on their way.
  await until(() => expect(received).toHaveLength(100))
  expect(held).toHaveLength(50)
  await until(async () => expect((await states()).filter((state) => state === 'delivered')).toHaveLength(50))
  for (const release of held) release()
  await until(async () => expect(new Set(await states())).toEqual(new Set(['delivered'])))
  expect(new Set(received.map(({ claims }) => claims['aud'])).size).toBe(100)
})

test('a relay that is killed while it sends to a hundred loses none: another tells them all', async () => {
  let kill = () => {}
  let isDead = false
  const { url, received } = await channel.receiver((_received, response) => {
    if (!isDead && received.length > 30) {
      kill()
      return
    }
    if (isDead) response.writeHead(200).end()
  })
  const clients = await Promise.all(Array.from({ length: 100 }, (_, index) => channel.client(`${url}/${index}`)))
  const { browser, idToken, sids } = await channel.signIn(clients)
  const relay = await channel.relayProcess()
  kill = () => relay.signal('SIGKILL')
  await channel.signOut(browser, idToken)
  await relay.exited
  isDead = true
  await channel.relay()
  await until(async () => expect((await states()).filter((state) => state === 'delivered')).toHaveLength(100), 60_000)
  const tokens = received.map(({ claims }) => claims['jti'])
  expect(new Set(tokens).size).toBe(tokens.length)
  expect(new Set(received.map(({ claims }) => claims['sid']))).toEqual(new Set(sids))
}, 90_000)

test('two relays tell everybody once', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay()
  await channel.relay()
  const clients = await Promise.all(Array.from({ length: 60 }, (_, index) => channel.client(`${url}/${index}`)))
  const { browser, idToken } = await channel.signIn(clients)
  await channel.signOut(browser, idToken)
  await until(async () => expect(new Set(await states())).toEqual(new Set(['delivered'])))
  expect(received).toHaveLength(60)
})

test('a logout token opens nothing: no hint, no access token, no subject of an exchange, no client assertion (T 127)', async () => {
  const { url, received } = await channel.receiver()
  await channel.relay()
  const client = await channel.client(url)
  const first = await channel.signIn([client])
  await channel.signOut(first.browser, first.idToken)
  const { token } = await until(() => received[0] ?? Promise.reject(new Error('not told yet')))
  const again = await channel.signIn([client])
  const { issuer } = channel
  const asHint = await channel.signOut(again.browser, token)
  expect([asHint.status, asHint.location]).toEqual([400, undefined])
  expect(again.browser.cookies.has('surrogate_session')).toBe(true)
  expect(await channel.flow.userinfo(token)).toBe(401)
  expect((await issuer.api('GET', '/users', undefined, { token })).status).toBe(401)
  const introspected = await request(`${issuer.issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: basic(client) },
    body: formOf({ token }),
  })
  expect(introspected).toMatchObject({ status: 200, body: { active: false } })
  const exchange = { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: token }
  expect(
    await issuer.token(client, { ...exchange, subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' }),
  ).toMatchObject({ status: 400 })
  const assertion = {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    ...{ client_assertion: token, grant_type: 'client_credentials', client_id: client.id },
  }
  expect(await issuer.token(undefined, assertion)).toMatchObject({ status: 401 })
})

test('an application that could tell nothing apart is not told: no openid, no redeemed code', async () => {
  await channel.receiver()
  const client = await channel.client('http://127.0.0.1:9/never')
  const { browser, idToken, sids } = await channel.signIn([client, client], { scopes: [] })
  // The second was without openid; a third waits for its client.
  const { person } = await channel.signIn([client])
  const code = await channel.flow.signIn(channel.flow.browser(), client, person)
  expect(code).toEqual(expect.any(String))
  await channel.signOut(browser, idToken)
  expect((await channel.deliveries()).map(({ sid }) => sid)).toEqual([sids[0]])
})
