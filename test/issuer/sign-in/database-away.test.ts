import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, createBrowser } from '../../support/browser.ts'
import { type CountingProxy, startCountingProxy } from '../../support/counting-proxy.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { passwords } from '../../support/shared-parts.ts'
import { answerOf } from '../../support/sign-in.ts'

/** A whole sign-in at the issuer as it runs, what it asks of PostgreSQL, and what happens when that goes away. */

const redirectUri = 'https://shop.example.test/callback'
const credentials = { identifier: 'ada', password: 'the right password', choice: 'sign_in' }

let issuer: TestIssuer
let proxy: CountingProxy
/** The connection of each round trip. */
const connections: number[] = []
let clientId: string
beforeAll(async () => {
  issuer = await startTestIssuer({
    through: async (connection) => {
      proxy = await startCountingProxy(connection, {
        onRoundTrip: (_, on) => connections.push(on.connection),
      })
      return proxy.connection
    },
  })
  const { id } = await issuer.createUser()
  const { digest } = await passwords.hash(credentials.password)
  await issuer.sql(
    `UPDATE users SET username = 'ada', password_digest = $2, password_algorithm = 'Argon2id' WHERE id = $1`,
    [id, digest],
  )
  clientId = (await issuer.createApplication({ type: 'SPA' })).id
  await issuer.sql('UPDATE applications SET oidc_client_metadata = $2 WHERE id = $1', [
    clientId,
    JSON.stringify({ redirectUris: [redirectUri] }),
  ])
})
afterAll(async () => {
  await issuer?.close()
  await proxy?.close()
})

const ask = (browser: Browser) =>
  browser.get(
    `/oidc/auth?${new URLSearchParams({
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
      state: 's',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    })}`,
  )
/** What was asked of PostgreSQL from then on, without what the issuer does by itself. */
const askedSince = (start: number): string[] => {
  const asked: string[] = []
  const transactions = new Map<number, { begun: number; names: string[] }>()
  proxy.roundTrips.forEach((name, index) => {
    const connection = connections[index]!
    if (name === 'BEGIN') transactions.set(connection, { begun: index, names: [] })
    const transaction = transactions.get(connection)
    if (transaction) transaction.names.push(name)
    else if (index >= start && name !== 'COMMIT') asked.push(name)
    if (name !== 'COMMIT' || !transaction) return
    transactions.delete(connection)
    // One that was begun before belongs to something else.
    const [, ...statements] = transaction.names.slice(0, -1)
    const isOwn = statements.every((statement) => /^(logouts|replay|feed)-/.test(statement))
    if (transaction.begun >= start && !isOwn) asked.push(...transaction.names)
  })
  return asked.filter((name) => !/^(logs-insert|settings-revision|logouts-)/.test(name))
}
const code = { code: expect.any(String), iss: expect.any(String), state: 's' }

test('a sign-in is at most four transactions that write, in at most ten statements', async () => {
  const browser = createBrowser(issuer.baseUrl)
  const before = proxy.roundTrips.length
  const page = await ask(browser)
  expect(answerOf(await browser.submit(page, credentials))).toEqual(code)
  const asked = askedSince(before)
  const writes = asked.filter(
    (name) =>
      /insert|count|success|signs-in|keep|finish|commit|outbox|touch|lock|save/i.test(name) &&
      !/audit|logs-insert/.test(name),
  )
  expect(writes.filter((name) => name === 'COMMIT')).toHaveLength(1)
  expect(writes.filter((name) => name !== 'COMMIT').toSorted()).toEqual(
    [
      'authorization-insert',
      'interaction-finish',
      'interaction-insert',
      'interaction-lock',
      'known-device-keep',
      'outbox-insert',
      'person-signs-in',
      'session-insert',
      'sign-in-failure-count',
      'sign-in-success',
    ].toSorted(),
  )
  const beforeAgain = proxy.roundTrips.length
  expect(answerOf(await ask(browser))).toEqual(code)
  expect(askedSince(beforeAgain)).toEqual(['authorization-request', 'session-find', 'authorization-insert'])
})

test('whose answer to the last commit is lost gets 503, keeps the cookies, and finds it done at the next try', async () => {
  const browser = createBrowser(issuer.baseUrl)
  const page = await ask(browser)
  const cookies = new Map(browser.cookies)
  const lost = proxy.loseAnswer('COMMIT', { after: 'interaction-finish' })
  const away = await browser.submit(page, credentials)
  await lost
  expect(away).toMatchObject({ status: 503, location: undefined })
  expect(browser.cookies).toEqual(cookies)
  const events = () => issuer.sql(`SELECT seq FROM outbox WHERE type = 'PostSignIn'`)
  const recorded = (await events()).length
  expect(answerOf(await browser.submit(page, credentials))).toEqual(code)
  expect((await events()).length).toBe(recorded)
  expect(browser.cookies.has('surrogate_session')).toBe(true)
})
