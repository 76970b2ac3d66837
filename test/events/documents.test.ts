import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue, eventTypes } from '../../events/catalogue.ts'
import { asyncApiDocument, eventsJsonSchema, payloadSchema } from '../../events/documents.ts'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { examples } from '../../events/records.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startTestIssuer } from '../support/issuer.ts'

const hookId = 'q3v0000000000000000000'.slice(0, 21)
const schemas = eventsJsonSchema()
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(schemas)
const validatorOf = (type: string) => ajv.getSchema(`${schemas['$id']}#/$defs/${type}`)!
const validateAny = ajv.getSchema(String(schemas['$id']))!

/** What a receiver gets: the stored bytes with the hook in front. */
const delivered = (payload: Buffer) => ({ hookId, ...JSON.parse(payload.toString()) })

describe('payloads of the issuer', () => {
  test('fit the schema of their type and no other', { timeout: 60_000 }, async () => {
    const issuer = await startTestIssuer()
    const call = async (method: string, path: string, body?: unknown) => {
      const answer = await issuer.api(method, path, body)
      expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
      return answer.body
    }
    try {
      const user = await call('POST', '/users', { username: 'ada' })
      await call('PATCH', `/users/${user.id}`, { name: 'Ada' })
      await call('PATCH', `/users/${user.id}/is-suspended`, { isSuspended: true })
      const resource = await call('POST', '/resources', { name: 'Orders', indicator: 'https://api.test/orders' })
      const scope = await call('POST', `/resources/${resource.id}/scopes`, { name: 'read:orders' })
      await call('PATCH', `/resources/${resource.id}/scopes/${scope.id}`, { description: 'x' })
      const role = await call('POST', '/roles', { name: 'Reader', description: 'Reads', scopeIds: [scope.id] })
      await call('PATCH', `/roles/${role.id}`, { description: 'Reads orders' })
      await call('DELETE', `/roles/${role.id}/scopes/${scope.id}`)
      const organization = await call('POST', '/organizations', { name: 'Acme' })
      await call('PATCH', `/organizations/${organization.id}`, { description: 'x' })
      await call('POST', `/organizations/${organization.id}/users`, { userIds: [user.id] })
      const organizationScope = await call('POST', '/organization-scopes', { name: 'invite' })
      await call('PATCH', `/organization-scopes/${organizationScope.id}`, { description: 'x' })
      const organizationRole = await call('POST', '/organization-roles', {
        name: 'Member',
        organizationScopeIds: [organizationScope.id],
      })
      await call('PATCH', `/organization-roles/${organizationRole.id}`, { description: 'x' })
      const { id: customer } = await issuer.createUser()
      const client = await issuer.createApplication({ allowTokenExchange: true })
      await issuer.exchange(client, await issuer.subjectToken(customer), { resource: 'https://api.test/orders' })
      const [session] = await call('GET', '/impersonations')
      await call('POST', `/impersonations/${session.id}/end`)
      for (const path of [
        `/organization-roles/${organizationRole.id}`,
        `/organization-scopes/${organizationScope.id}`,
        `/organizations/${organization.id}`,
        `/roles/${role.id}`,
        `/resources/${resource.id}/scopes/${scope.id}`,
        `/users/${user.id}`,
      ])
        await call('DELETE', path)

      const rows = await issuer.sql<{ type: string; payload: Buffer }>('SELECT type, payload FROM outbox ORDER BY seq')
      for (const { type, payload } of rows) {
        const validate = validatorOf(type)
        expect(validate(delivered(payload)), `${type}: ${ajv.errorsText(validate.errors)} ${payload}`).toBe(true)
        expect(validateAny(delivered(payload))).toBe(true)
      }
      // Those that only signing in causes: test/issuer/sign-in.
      const ofSignIn = new Set(['interaction', 'exception'])
      // Those that somebody's approval causes: test/issuer/tokens/impersonation-requests.
      const isApproval = (entity: string) => entity === 'impersonation-request'
      const recorded = catalogue.filter(
        ({ planned, category, entity }) => !planned && !ofSignIn.has(category) && !isApproval(entity),
      )
      expect(new Set(rows.map(({ type }) => type))).toEqual(new Set(recorded.map(({ type }) => type)))
    } finally {
      await issuer.close()
    }
  })
})

describe('every payload that is recorded', () => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createTestDatabase()
  })
  afterAll(() => db.close())

  const payloadOf = async (type: string, data: unknown) => {
    const { entity } = eventTypes.get(type)!
    const request = {
      ip: '203.0.113.7',
      userAgent: undefined,
      method: 'POST',
      path: '/users',
      matchedRoute: '/users',
      params: {},
      status: 200,
    }
    const event = { type, entity: { kind: entity, id: 'e1' }, data, extras: { addedUserIds: ['u1'] }, request }
    await db.database.transaction((query) => recordEvent(query, event as NewEvent))
    const [row] = await db.database.query<{ payload: Buffer }>(
      { name: '', text: 'SELECT payload FROM outbox ORDER BY seq DESC LIMIT 1' },
      [],
    )
    return delivered(row!.payload)
  }

  test('has the members that its schema requires, whatever its type', async () => {
    for (const { type, example } of catalogue) {
      const validate = validatorOf(type)
      expect(validate(await payloadOf(type, example.data)), `${type}: ${ajv.errorsText(validate.errors)}`).toBe(true)
    }
  })

  test('with something missing, of another type or with other data does not fit', async () => {
    const payload = await payloadOf('User.Created', examples.user)
    const validate = validatorOf('User.Created')
    expect(validate(payload)).toBe(true)
    for (const name of ['hookId', 'id', 'event', 'version', 'apiVersion', 'correlationId', 'createdAt', 'data']) {
      const { [name]: _, ...rest } = payload
      expect(validate(rest), `without ${name}`).toBe(false)
    }
    expect(validate({ ...payload, event: 'User.Deleted' })).toBe(false)
    expect(validate({ ...payload, data: { ...examples.user, isSuspended: 'no' } })).toBe(false)
    expect(validate({ ...payload, version: 0 })).toBe(false)
    const data = { ...examples.user, aMemberOfTomorrow: 1 }
    expect(validate({ ...payload, data, aMemberOfTomorrow: 1 })).toBe(true)
  })
})

test('the AsyncAPI document has a message for every type, and each of its references leads somewhere', () => {
  const document = asyncApiDocument()
  const resolve = (reference: string) =>
    reference
      .slice(2)
      .split('/')
      // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
      .reduce((node: any, name) => node?.[name], document)
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!)
  for (const reference of references) expect(resolve(reference), reference).toBeTypeOf('object')
  for (const row of catalogue) {
    const message = resolve(`#/components/messages/${row.type}`)
    expect(message.summary).toBe(`Occurs when ${row.occurs}.${row.planned ? ' Not sent yet.' : ''}`)
    expect(resolve(message.payload.$ref)).toEqual(payloadSchema(row))
    expect(resolve(`#/channels/webhooks/messages/${row.type}`)).toBeDefined()
  }
  expect(resolve('#/operations/deliver').messages).toHaveLength(catalogue.length)
})

test('the command prints the documents, and says what it can print', async () => {
  const cli = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))
  const describeBy = (...args: string[]) => promisify(execFile)(process.execPath, [cli, 'describe', ...args])
  expect(JSON.parse((await describeBy('events')).stdout)).toEqual(JSON.parse(JSON.stringify(eventsJsonSchema())))
  expect(JSON.parse((await describeBy('asyncapi')).stdout)).toEqual(JSON.parse(JSON.stringify(asyncApiDocument())))
  await expect(describeBy('everything')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Use one of events, asyncapi.'),
  })
})
