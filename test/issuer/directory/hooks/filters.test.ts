import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { catalogue } from '../../../../events/catalogue.ts'
import { eventPatternOf, patternsOf, typesMatching } from '../../../../events/event-patterns.ts'
import { type HookTest, startHookTest } from '../../../support/hooks.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'

/** Which events a hook gets: by type, by wildcard, by organization. */

let hooks: HookTest
let receiver: WebhookReceiver
beforeAll(async () => {
  hooks = await startHookTest()
  receiver = await startWebhookReceiver()
  await hooks.relay()
})
afterAll(async () => {
  await hooks.close()
  await receiver.close()
})
afterEach(async () => {
  for (const { id } of await hooks.call(200, 'GET', '/hooks')) await hooks.call(204, 'DELETE', `/hooks/${id}`)
})

const queuedFor = async ({ id }: { id: string }): Promise<string[]> => {
  await hooks.ingested()
  const rows = await hooks.call(200, 'GET', `/hooks/${id}/deliveries?page_size=100`)
  return rows.map((row: { event: string }) => row.event).toReversed()
}
const api = async (method: string, path: string, body?: unknown) => {
  const answer = await hooks.issuer.api(method, path, body)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}
let count = 0
const unique = (name: string) => `${name}_${count++}`

test('a wildcard covers the types below it; several that cover the same give one delivery', async () => {
  const create = (events: string[]) => hooks.create({ url: receiver.url, events })
  const all = await create(['*'])
  const users = await create(['User.*'])
  const data = await create(['User.Data.*'])
  const twice = await create(['User.Created', 'User.*', '*'])
  const roles = await create(['Role.*'])
  expect(twice.events).toEqual(['User.Created', 'User.*', '*'])

  const user = await api('POST', '/users', { username: unique('ada') })
  await api('PATCH', `/users/${user.id}`, { name: 'Ada' })
  await api('POST', '/organization-roles', { name: unique('member') })
  const everything = ['User.Created', 'User.Data.Updated', 'OrganizationRole.Created']
  // In order for each entity, that is.
  expect((await queuedFor(all)).toSorted()).toEqual(everything.toSorted())
  expect((await queuedFor(twice)).toSorted()).toEqual(everything.toSorted())
  expect(await queuedFor(users)).toEqual(everything.slice(0, 2))
  expect(await queuedFor(data)).toEqual(['User.Data.Updated'])
  // Not OrganizationRole.
  expect(await queuedFor(roles)).toEqual([])
})

test('impersonations go only to hooks that name them', async () => {
  const { issuer } = hooks
  const all = await hooks.create({ url: receiver.url, events: ['*'] })
  const named = await hooks.create({ url: receiver.url, events: ['Impersonation.Started', 'User.*'] })
  const user = await issuer.createUser()
  const client = await issuer.createApplication({ allowTokenExchange: true })
  const exchanged = await issuer.exchange(client, await issuer.subjectToken(user.id), { scope: 'openid' })
  expect(exchanged.status).toBe(200)
  expect(await queuedFor(named)).toEqual(['Impersonation.Started'])
  expect(await queuedFor(all)).toEqual([])

  for (const events of [['Impersonation.*'], ['Nobody.*'], ['User'], ['User.'], ['**'], ['User.*.Updated'], ['']]) {
    const { status, body } = await issuer.api('POST', '/hooks', { events, config: { url: receiver.url } })
    expect([events[0], status, body.code]).toEqual([events[0], 400, 'guard.invalid_input'])
  }
  const { body } = await issuer.api('POST', '/hooks', { events: ['Impersonation.*'], config: { url: receiver.url } })
  expect(body.details).toContain('must be named')
})

test('a hook of some organizations gets their events and no others', async () => {
  const [acme, other] = [
    await api('POST', '/organizations', { name: 'Acme' }),
    await api('POST', '/organizations', { name: 'Other' }),
  ]
  // A hook gets what is taken in once it is there.
  await hooks.ingested()
  const hook = await hooks.create({ url: receiver.url, events: ['*'], organizationIds: [acme.id, acme.id] })
  expect(hook.organizationIds).toEqual([acme.id])
  const user = await api('POST', '/users', { username: unique('ada') })
  await api('POST', `/organizations/${acme.id}/users`, { userIds: [user.id] })
  await api('POST', `/organizations/${other.id}/users`, { userIds: [user.id] })
  await api('PATCH', `/organizations/${acme.id}`, { description: 'x' })
  expect(await queuedFor(hook)).toEqual(['Organization.Membership.Updated', 'Organization.Data.Updated'])

  const wider = await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { organizationIds: null })
  expect(wider.organizationIds).toBe(null)
  expect((await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { organizationIds: [] })).organizationIds).toBe(null)
  await api('POST', '/users', { username: unique('grace') })
  expect(await queuedFor(hook)).toHaveLength(3)
})

test('what a hook listens to is decided when the event is taken in, not when it is sent', async () => {
  const hook = await hooks.create({ url: receiver.url, events: ['User.Created'], enabled: false })
  await api('POST', '/users', { username: unique('ada') })
  expect(await queuedFor(hook)).toEqual(['User.Created'])
  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { events: ['Role.Created'], enabled: true })
  await hooks.settled(hook.id)
  expect(receiver.received.at(-1)!.body).toMatchObject({ hookId: hook.id, event: 'User.Created' })
})

test('every pattern of every type leads back to it, and a name that is no event to nothing', () => {
  for (const { type, named } of catalogue) {
    expect(eventPatternOf(type)).toBe(type)
    for (const pattern of patternsOf(type)) expect(typesMatching([pattern])).toContain(type)
    expect(patternsOf(type).length === 1).toBe(named === true)
  }
  expect(typesMatching(['*'])).toEqual(catalogue.filter(({ named }) => !named).map(({ type }) => type))
  // Of a newer version: it reaches whoever listens to everything of its kind.
  expect(patternsOf('User.Mfa.Updated')).toEqual(['User.Mfa.Updated', '*', 'User.*', 'User.Mfa.*'])
  for (const name of ['', '.*', '*.*', 'user.*', 'constructor', '__proto__'])
    expect(eventPatternOf(name)).toBe(undefined)
})
