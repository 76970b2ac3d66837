import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  type ExperiencePages,
  type ExperiencePerson,
  freshName,
  startExperience,
  type TestExperience,
} from '../../support/experience.ts'
import { until } from '../../support/until.ts'

/** Fifty at once, over two instances: whatever is good once is good once. */

let experience: TestExperience

beforeAll(async () => {
  experience = await startExperience({
    instances: 2,
    settings: {
      mfa: { factors: ['Totp', 'BackupCode', 'WebAuthn'], policy: 'NoPrompt' },
      passkeySignIn: { enabled: true, showPasskeyButton: true, allowAutofill: true },
    },
  })
})
afterAll(() => experience.close())
beforeEach(() => {
  experience.clock.now += 300_000
})

const fifty = <Result>(call: (index: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: 50 }, (_, index) => call(index)))

const byPassword = ({ username, password }: Pick<ExperiencePerson, 'username' | 'password'>) => ({
  identifier: { type: 'username', value: username },
  password,
})

const identified = async (person: ExperiencePerson): Promise<ExperiencePages> => {
  const pages = await experience.pages()
  const { body } = await pages.post('/verification/password', byPassword(person))
  expect((await pages.post('/identification', body)).status).toBe(204)
  return pages
}

const successes = (answers: { status: number }[]) => {
  expect(answers.filter(({ status }) => status >= 500)).toEqual([])
  return answers.filter(({ status }) => status < 300).length
}

test('a step of an authenticator app, in one sign-in and in five', async () => {
  const person = await experience.createPerson({ hasAddresses: false })
  const secret = await experience.addTotp(person)
  const one = await identified(person)
  const code = experience.totp(secret)
  const verify = (pages: ExperiencePages, index: number, shown: string) =>
    pages.post('/verification/totp/verify', { code: shown }, { instance: index % 2 })
  expect(successes(await fifty((index) => verify(one, index, code)))).toBe(1)

  const other = await experience.createPerson({ hasAddresses: false })
  const others = await experience.addTotp(other)
  const five = await Promise.all(Array.from({ length: 5 }, () => identified(other)))
  const shown = experience.totp(others)
  const answers = await Promise.all(five.map((pages, index) => verify(pages, index, shown)))
  expect(successes(answers)).toBe(1)
})

test('a backup code, in one sign-in and in five', async () => {
  const person = await experience.createPerson({ hasAddresses: false })
  await experience.addTotp(person)
  const [code, another] = await experience.addBackupCodes(person)
  const five = await Promise.all(Array.from({ length: 5 }, () => identified(person)))
  const verify = (pages: ExperiencePages, index: number, shown: string | undefined) =>
    pages.post('/verification/backup-code/verify', { code: shown }, { instance: index % 2 })
  const answers = await Promise.all(five.map((pages, index) => verify(pages, index, code)))
  expect(successes(answers)).toBe(1)
  await experience.issuer.sql('DELETE FROM sign_in_failures')
  const one = await identified(person)
  expect(successes(await fifty((index) => verify(one, index, another)))).toBe(1)
})

test('a backup code and a passkey at once: neither use is lost', async () => {
  const person = await experience.createPerson({ hasAddresses: false })
  const device = await experience.addPasskey(person)
  const [code] = await experience.addBackupCodes(person)
  const [first, second] = [await identified(person), await identified(person)]
  const asked = await second.post('/verification/web-authn/authentication')
  const payload = device.get(asked.body.authenticationOptions)
  const { verificationId } = asked.body
  const answers = await Promise.all([
    first.post('/verification/backup-code/verify', { code }),
    second.post('/verification/web-authn/authentication/verify', { verificationId, payload }, { instance: 1 }),
  ])
  expect(successes(answers)).toBe(2)
  const used = await experience.issuer.sql('SELECT FROM backup_codes WHERE user_id = $1 AND used_at IS NOT NULL', [
    person.id,
  ])
  expect(used).toHaveLength(1)
})

test('the challenge of a passkey', async () => {
  const person = await experience.createPerson({ hasAddresses: false })
  const device = await experience.addPasskey(person)
  const pages = await experience.pages()
  const { body } = await pages.post('/preflight/sign-in-passkey/authentication')
  const answer = { verificationId: body.verificationId, payload: device.get(body.authenticationOptions) }
  const path = '/verification/sign-in-passkey/authentication/verify'
  expect(successes(await fifty((index) => pages.post(path, answer, { instance: index % 2 })))).toBe(1)
})

test('a submit: one session, one event, one redirect', async () => {
  const person = await experience.createPerson({ hasAddresses: false })
  const pages = await identified(person)
  await pages.post('/profile/mfa/passkey-skipped')
  const answers = await fifty((index) => pages.post('/submit', undefined, { instance: index % 2 }))
  expect(new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`)).size).toBe(1)
  expect(answers[0]!.status).toBe(200)
  const { sql } = experience.issuer
  expect(await sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)
  expect(await sql('SELECT FROM authorizations WHERE user_id = $1', [person.id])).toHaveLength(1)
  const told = (await experience.events('PostSignIn')).filter(({ userId }) => userId === person.id)
  expect(told).toHaveLength(1)
})

test('the registration of one name, by fifty browsers', async () => {
  const identity = { username: freshName(), password: 'pwd_3f1c9a7b5d2e' }
  const ends = await fifty(async (index) => {
    const pages = await experience.pages()
    const instance = index % 2
    await pages.put('', { interactionEvent: 'Register' })
    const named = await pages.post('/verification/new-password-identity', byPassword(identity), { instance })
    await pages.post('/identification', named.body, { instance })
    return pages.post('/submit', undefined, { instance })
  })
  expect(successes(ends)).toBe(1)
  expect(await experience.issuer.sql('SELECT FROM users WHERE username = $1', [identity.username])).toHaveLength(1)
})

test('a password that is changed while another sign-in is under way: what it opened ends, and its proof is none', async () => {
  const person = await experience.createPerson()
  const before = await identified(person)
  const { code } = await before.finish()
  const tokens = await experience.flow.redeem(experience.client, code!)
  const underWay = await identified(person)

  const pages = await experience.pages()
  await pages.put('', { interactionEvent: 'ForgotPassword' })
  const identifier = { type: 'email', value: person.email }
  const asked = { identifier, interactionEvent: 'ForgotPassword' }
  const { verificationId } = (await pages.post('/verification/verification-code', asked)).body
  const answer = { identifier, verificationId, code: await experience.codeTo(person.email) }
  await pages.post('/verification/verification-code/verify', answer)
  await pages.post('/identification', { verificationId })
  await pages.put('/profile/password', { password: 'pwd_a_new_one_77' })
  expect((await pages.post('/submit')).status).toBe(200)

  const refreshed = await experience.flow.refresh(experience.client, tokens.body.refresh_token, 1)
  expect(refreshed).toMatchObject({ status: 400, body: { error: 'invalid_grant', reason: 'session_ended' } })
  expect((await underWay.post('/submit')).status).toBe(404)
  const again = await before.browser.send(experience.flow.authorizationUrl(experience.client, { prompt: '' }))
  expect(again.location).toContain('/sign-in/')
})

test('what somebody was to become is not what the next person at this browser becomes', async () => {
  const [ada, bob] = [await experience.createPerson(), await experience.createPerson()]
  await experience.issuer.sql('UPDATE users SET password_expired = true WHERE id = ANY ($1)', [[ada.id, bob.id]])
  const pages = await identified(ada)
  await experience.issuer.sql(`UPDATE users SET password_digest = NULL, password_algorithm = NULL WHERE id = $1`, [
    ada.id,
  ])
  // A password of Ada's waits; then Bob proves who he is.
  expect((await pages.post('/profile', { type: 'password', value: 'pwd_known_to_ada_1' })).status).toBe(204)
  await pages.post('/verification/password', byPassword(bob))
  const { body } = await pages.get('/interaction')
  expect(body.profile.hasPassword).toBe(false)
})

test('a name that is on its way while the sign-in becomes one for something else is not kept', async () => {
  const pages = await experience.pages()
  await pages.put('', { interactionEvent: 'Register' })
  const { knex } = experience.issuer.database
  const trx = await knex.transaction()
  await trx.raw('SELECT FROM interactions WHERE id = ? FOR UPDATE', [pages.interactionId])
  const identity = { username: freshName(), password: 'pwd_3f1c9a7b5d2e' }
  const answer = pages.post('/verification/new-password-identity', byPassword(identity))
  await until(async () => {
    const waiting = await experience.issuer.sql(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%staged || %'`,
    )
    expect(waiting).not.toEqual([])
  })
  await trx('interactions').where({ id: pages.interactionId }).update({ event: 'SignIn' })
  await trx.commit()
  expect(await answer).toMatchObject({ status: 404, body: { code: 'session.not_found' } })
  const rows = await experience.issuer.sql('SELECT staged FROM interactions WHERE id = $1', [pages.interactionId])
  expect(rows).toEqual([{ staged: {} }])
})
