import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorize, refresh } from '../support/authorizations.ts'
import { type IssuerBehindProxy, startIssuerBehindProxy } from '../support/issuer-behind-proxy.ts'
import type { TestApplication } from '../support/issuer-data.ts'

/** What a token costs in round trips to the database, counted between the issuer and PostgreSQL. */

let issuer: IssuerBehindProxy
let machine: TestApplication
let app: TestApplication
let resource: string
let userId: string
let supporterToken: string

beforeAll(async () => {
  issuer = await startIssuerBehindProxy()
  // Telling people of impersonations is a job of its own, and would be counted with requests.
  await issuer.api('PATCH', '/sign-in-exp', { notifyImpersonation: false })
  resource = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  machine = await issuer.createMachine(resource, ['read:orders'])
  app = await issuer.createApplication()
  const [user, supporter] = [await issuer.createUser(), await issuer.createUser()]
  userId = user.id
  await issuer.grantUser(userId, resource, ['read:orders', 'write:orders'])
  supporterToken = await issuer.actorToken(app, supporter.id)
  await issuer.clientToken(machine, resource, 'read:orders')
})

afterAll(() => issuer?.close())

const scope = 'read:orders write:orders'

/** What the issuer does by itself: audit rows of earlier requests, settings, notices, logouts, replays, the feed. */
const ownWork = /^(logs-insert|settings-revision|notice-|logouts-|replay-|feed-)/

interface Transaction {
  roundTrips: { name: string; index: number }[]
  isOver: boolean
}

/** Round trips by transaction, in the order in which the transactions began; a statement outside of one is its own. */
const transactions = (): Transaction[] => {
  const all: Transaction[] = []
  const open = new Map<number | undefined, Transaction>()
  issuer.roundTrips.forEach((name, index) => {
    const connection = issuer.connections[index]
    const transaction = open.get(connection) ?? { roundTrips: [], isOver: name !== 'BEGIN' }
    if (!open.has(connection)) all.push(transaction)
    transaction.roundTrips.push({ name, index })
    if (name === 'BEGIN') open.set(connection, transaction)
    if (name !== 'COMMIT' && name !== 'ROLLBACK') return
    transaction.isOver = true
    open.delete(connection)
  })
  return all
}

/** What went to the database between the request and its answer, but for the issuer's own work. */
const roundTripsOf = async (request: () => Promise<{ status: number }>): Promise<readonly string[]> => {
  const before = issuer.roundTrips.length
  const { status } = await request()
  const after = issuer.roundTrips.length
  expect(status).toBe(200)
  // Only then is it known whose a BEGIN is.
  await expect.poll(() => transactions().every(({ isOver }) => isOver)).toBe(true)
  return transactions()
    .filter(({ roundTrips }) => !roundTrips.some(({ name }) => ownWork.test(name)))
    .flatMap(({ roundTrips }) => roundTrips.filter(({ index }) => index >= before && index < after))
    .map(({ name }) => name)
}

const clientCredentials = (client: TestApplication) =>
  issuer.token(client, { grant_type: 'client_credentials', resource, scope: 'read:orders' })

test('a client_credentials request is one round trip', async () => {
  expect(await roundTripsOf(() => clientCredentials(machine))).toEqual(['token-request'])
})

test('a token exchange with an actor is three round trips, its session, audit row and event included', async () => {
  const subjectToken = await issuer.subjectToken(userId)
  const actor = { actor_token: supporterToken, actor_token_type: 'urn:ietf:params:oauth:token-type:access_token' }
  const exchange = () => issuer.exchange(app, subjectToken, { resource, scope, ...actor })
  expect(await roundTripsOf(exchange)).toEqual([
    // In one go with the client's own facts.
    'exchange-facts-subject-token-opaque-token',
    'token-request',
    'exchange-consume-jwt',
  ])
  const [session] = await issuer.sql<{ id: string }>(
    `SELECT id FROM impersonation_sessions WHERE subject_id = $1 AND actor_id IS NOT NULL`,
    [userId],
  )
  expect(
    await issuer.sql(`SELECT FROM outbox WHERE type = 'Impersonation.Started' AND entity_id = $1`, [session?.id]),
  ).toHaveLength(1)
})

test('a code and a refresh token are two round trips each, with all that is stored', async () => {
  const page = await issuer.createApplication({ type: 'SPA' })
  const scopes = ['openid', 'offline_access', 'profile', 'read:orders']
  const code = await authorize(issuer, page, userId, { scopes, resources: [resource] })
  let refreshToken = ''
  const redeemed = async () => {
    const answer = await code.redeem()
    refreshToken = answer.body.refresh_token
    return answer
  }
  // The facts go out in one go with the client's own.
  expect(await roundTripsOf(redeemed)).toEqual(['code-facts', 'token-request', 'code-redeem'])
  expect(await roundTripsOf(() => refresh(issuer, page, refreshToken, { resource }))).toEqual([
    'refresh-facts',
    'token-request',
    'refresh-rotate',
  ])
})

test('concurrent requests share round trips, their audit rows too', async () => {
  const busy = await issuer.createMachine(resource, ['read:orders'])
  const before = issuer.roundTrips.length
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 10 }, () => clientCredentials(busy)))

  const audited = () => issuer.sql('SELECT FROM logs WHERE application_id = $1', [busy.id])
  await expect.poll(audited).toHaveLength(100)
  expect(issuer.roundTrips.slice(before).filter((name) => name === 'token-request').length).toBeLessThan(60)
  expect(issuer.roundTrips.length - before).toBeLessThan(100)
})

test('an exchange for a user whose row is locked holds up nobody else', async () => {
  const held = await issuer.createUser()
  const others = await Promise.all(Array.from({ length: 5 }, () => issuer.createUser()))
  const exchangeFor = async (user: { id: string }) =>
    issuer.exchange(app, await issuer.subjectToken(user.id), { resource, scope })
  const tokenOfHeld = await issuer.subjectToken(held.id)
  let answered = false
  let waiting: Promise<{ status: number }> | undefined
  await issuer.database.transaction(async (query) => {
    await query({ name: 'lock-user', text: 'SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE' }, [held.id])
    waiting = issuer.exchange(app, tokenOfHeld, { resource, scope }).finally(() => {
      answered = true
    })
    const answers = await Promise.all(others.map(exchangeFor))
    expect(answers.map(({ status }) => status)).toEqual(others.map(() => 200))
    expect(answered).toBe(false)
  })
  expect(await waiting).toMatchObject({ status: 200 })
})
