import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CodeFlow, createCodeFlow, type Person } from '../../../support/code-flow.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

let issuer: TestIssuer
let flow: CodeFlow
let client: TestApplication
let token: string
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  client = await flow.createClient()
  token = await issuer.managementToken()
})
afterAll(() => issuer.close())

/** By a backend, with the Management API: the status, and the code of an error. */
const verify = async ({ id }: Person, password: string, instance = 0): Promise<string> => {
  const { status, body } = await issuer.api('POST', `/users/${id}/password/verify`, { password }, { token, instance })
  return [status, body.code].join(' ').trim()
}
const right = '204'
const wrong = '422 session.invalid_credentials'
const locked = '400 session.verification_blocked_too_many_attempts'

/** By a person, on the page: 303 leads back to the client. */
const signIn = async (person: Person, browser = flow.browser()): Promise<number> => {
  const page = await flow.ask(browser, client, { prompt: 'login' })
  return (await flow.send(browser, page, flow.credentials(person))).status
}
const failToSignIn = async (person: Person, times: number, browser?: ReturnType<CodeFlow['browser']>) => {
  for (let n = 0; n < times; n++) expect(await signIn({ ...person, password: 'wrong' }, browser)).toBe(400)
}
const failToVerify = async (person: Person, times: number) => {
  for (let n = 0; n < times; n++) expect(await verify(person, 'wrong', n % 2)).toBe(wrong)
}

const lockoutsOf = async ({ id }: Person) =>
  (
    await issuer.sql<{ payload: Buffer }>(
      `SELECT payload FROM outbox WHERE type = 'Identifier.Lockout' AND entity_id = $1`,
      [id],
    )
  ).map(({ payload }) => JSON.parse(payload.toString()))

test('a backend’s question is no way around the lockout: both count the same failures', async () => {
  const person = await flow.createPerson()
  await failToSignIn(person, 5)
  await failToVerify(person, 4)
  // The last one that is allowed locks, for both.
  expect(await verify(person, 'wrong')).toBe(locked)
  expect(await signIn(person)).toBe(400)
  expect(await verify(person, person.password)).toBe(locked)
  expect(await lockoutsOf(person)).toMatchObject([
    {
      event: 'Identifier.Lockout',
      data: null,
      type: 'userId',
      value: person.id,
      matchedRoute: '/users/:userId/password/verify',
    },
  ])

  const other = await flow.createPerson()
  await failToVerify(other, 5)
  await failToSignIn(other, 5)
  expect(await verify(other, other.password, 1)).toBe(locked)
  expect(await lockoutsOf(other)).toMatchObject([{ type: 'username' }])
})

test('the right password forgets the failures, and an administrator ends the lock, whichever way they came about', async () => {
  const person = await flow.createPerson()
  await failToVerify(person, 9)
  expect(await signIn(person)).toBe(303)
  await failToVerify(person, 9)
  expect(await verify(person, person.password)).toBe(right)
  await failToVerify(person, 9)
  expect(await verify(person, 'wrong')).toBe(locked)
  await issuer.api('POST', '/sentinel-activities/delete', { targetType: 'User', targets: [person.id] }, { token })
  expect(await verify(person, person.password)).toBe(right)
  expect(await signIn(person)).toBe(303)
})

test('of fifty wrong ones at once over two instances ten are looked at, and the lock is told once', async () => {
  const person = await flow.createPerson()
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => verify(person, `wrong ${n}`, n % 2)))
  expect(Object.groupBy(answers, (answer) => answer)).toEqual({
    [wrong]: Array(9).fill(wrong),
    [locked]: Array(41).fill(locked),
  })
  expect(await lockoutsOf(person)).toHaveLength(1)
  const { body: logs } = await issuer.api(
    'GET',
    `/logs?userId=${person.id}&logKey=Management.verifyUserPassword`,
    undefined,
    { token },
  )
  expect(logs).toMatchObject([{ payload: { isLocked: true, events: [{ type: 'Identifier.Lockout' }] } }])
})

test('a backend locks nobody out of a browser of theirs, and its address is nobody’s', async () => {
  const person = await flow.createPerson()
  const own = flow.browser()
  expect(await signIn(person, own)).toBe(303)
  await issuer.sql('DELETE FROM sign_in_failures')
  await failToVerify(person, 9)
  expect(await verify(person, 'wrong')).toBe(locked)
  // One counter is that of the account.
  expect(await issuer.sql('SELECT FROM sign_in_failures')).toHaveLength(1)
  expect(await signIn(person, own)).toBe(303)
  // What a browser of theirs does wrong is none of a backend’s business.
  const other = await flow.createPerson()
  const theirs = flow.browser()
  expect(await signIn(other, theirs)).toBe(303)
  await failToSignIn(other, 10, theirs)
  expect(await verify(other, other.password)).toBe(right)
})

test('somebody without a password is counted too, and nobody is nobody', async () => {
  const { id } = await issuer.createUser()
  const person = { ...(await flow.createPerson()), id }
  await failToVerify(person, 9)
  expect(await verify(person, 'wrong')).toBe(locked)
  const before = await issuer.sql('SELECT FROM sign_in_failures')
  expect(await verify({ ...person, id: 'nobody' }, 'wrong')).toBe('404 entity.not_found')
  expect(await issuer.sql('SELECT FROM sign_in_failures')).toHaveLength(before.length)
})
