import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CodeFlow, createCodeFlow, type Person } from '../../../support/code-flow.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

let issuer: TestIssuer
let flow: CodeFlow
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  client = await flow.createClient()
})
afterAll(() => issuer.close())

/** The status of an attempt: 303 leads back to the client. */
const attempt = async (person: Person, browser = flow.browser()): Promise<number> => {
  const page = await flow.ask(browser, client, { prompt: 'login' })
  return (await flow.send(browser, page, flow.credentials(person))).status
}

const lockOut = async (person: Person, browser = flow.browser()) => {
  await attempt({ ...person, password: 'wrong' }, browser)
  await issuer.sql('UPDATE sign_in_failures SET count = 9 WHERE count BETWEEN 1 AND 8')
  await attempt({ ...person, password: 'wrong' }, browser)
  expect(await attempt(person, browser)).toBe(400)
}

const clear = async (targets: string[], targetType = 'User') => {
  // The address is the same for all of them.
  await issuer.sql('UPDATE sign_in_failures SET count = 0 WHERE locked_until IS NULL')
  return (await issuer.api('POST', '/sentinel-activities/delete', { targetType, targets })).status
}

test('an administrator ends the lock of an account, by whatever names it, and of its own browsers too', async () => {
  const person = await flow.createPerson()
  await issuer.api('PATCH', `/users/${person.id}`, {
    primaryEmail: 'locked@example.test',
    primaryPhone: '4407700900123',
  })
  const own = flow.browser()
  expect(await attempt(person, own)).toBe(303)
  for (const target of [
    person.username.toUpperCase(),
    ' Locked@Example.test ',
    '+44 (0)7700 900123',
    '447700900123',
    person.id,
  ]) {
    await lockOut(person)
    await lockOut(person, own)
    expect(await clear(['somebody else'])).toBe(204)
    expect(await attempt(person)).toBe(400)
    expect(await clear([target], 'App')).toBe(204)
    expect(await attempt(person, own)).toBe(400)
    expect(await clear([target])).toBe(204)
    expect([await attempt(person), await attempt(person, own)]).toEqual([303, 303])
  }
})

test('failures of an identifier that is nobody’s are forgotten as well', async () => {
  const nobody = { id: '', username: 'Nobody@example.test', password: 'wrong' }
  await lockOut(nobody)
  const locked = async () =>
    (await issuer.sql('SELECT FROM sign_in_failures WHERE locked_until > now() OR count > 10')).length
  expect(await locked()).toBeGreaterThan(0)
  await clear(['nobody@EXAMPLE.test'])
  expect(await locked()).toBe(0)
})

test('ending locks needs the permission for users', async () => {
  const token = await issuer.managementToken('read')
  const body = { targetType: 'User', targets: ['ada'] }
  expect((await issuer.api('POST', '/sentinel-activities/delete', body, { token })).status).toBe(403)
})

test('whoever acts for a holder of the permission can make no one-time token, and end no lock', async () => {
  const owner = await issuer.createUser()
  await issuer.grantUser(owner.id, issuer.managementResource, ['all'])
  const machine = await issuer.createApplication({ type: 'MachineToMachine', allowTokenExchange: true })
  const { status, body } = await issuer.exchange(machine, await issuer.subjectToken(owner.id), {
    resource: issuer.managementResource,
    scope: 'all users',
  })
  expect([status, body.scope]).toEqual([200, ''])
  const token = body.access_token
  const refused = [
    await issuer.api('POST', '/one-time-tokens', { email: 'ada@example.test' }, { token }),
    await issuer.api('POST', '/one-time-tokens/verify', { email: 'ada@example.test', token: 'x' }, { token }),
    await issuer.api('POST', '/sentinel-activities/delete', { targetType: 'User', targets: ['ada'] }, { token }),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 403, 403])
})
