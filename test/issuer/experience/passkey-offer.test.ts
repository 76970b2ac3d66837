import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type ExperiencePages,
  type ExperiencePerson,
  startExperience,
  type TestExperience,
} from '../../support/experience.ts'

/** A passkey for next time, offered over the Experience API, where passkeys are no second factor. */

let experience: TestExperience
beforeAll(async () => {
  experience = await startExperience({
    settings: { passkeySignIn: { enabled: true, showPasskeyButton: true, allowAutofill: true } },
  })
})
afterAll(() => experience.close())

const identified = async (person: ExperiencePerson): Promise<ExperiencePages> => {
  const pages = await experience.pages()
  const identifier = { type: 'username', value: person.username }
  const { body } = await pages.post('/verification/password', { identifier, password: person.password })
  expect((await pages.post('/identification', body)).status).toBe(204)
  return pages
}

const preferred = { status: 422, body: { code: 'user.passkey_preferred' } }

test('it is offered with the code of existing clients, bound by their calls, and proves nothing yet', async () => {
  const person = await experience.createPerson()
  const pages = await identified(person)
  expect(await pages.post('/submit')).toMatchObject(preferred)
  const { next } = (await pages.get('/interaction')).body
  const options = { isSkippable: true, isConditional: true }
  expect(next).toEqual({ step: 'passkey', reasons: ['suggested'], options })

  const { body } = await pages.post('/verification/web-authn/registration')
  const { verificationId } = body
  // As a password manager makes one by itself.
  const unseen = { flags: { up: false, uv: false } }
  const payload = experience.authenticator().create(body.registrationOptions, unseen)
  const made = { verificationId, payload }
  expect((await pages.post('/profile/mfa/passkey', { verificationId })).status).toBe(400)
  expect((await pages.post('/verification/web-authn/registration/verify', made)).status).toBe(200)
  expect((await pages.post('/profile/mfa/passkey', { verificationId })).status).toBe(204)
  expect((await pages.finish())['code']).toBeDefined()
  const [session] = await experience.issuer.sql('SELECT acr FROM sessions WHERE user_id = $1', [person.id])
  expect(session).toEqual({ acr: 'urn:surrogate:acr:basic' })

  const later = await identified(person)
  expect(await later.post('/submit')).toMatchObject({ status: 200 })
})

test('it is put off, for this person and for a while', async () => {
  const person = await experience.createPerson()
  const pages = await identified(person)
  expect((await pages.get('/interaction')).body.mfa.passkeySkipped).toBe(false)
  expect((await pages.post('/profile/mfa/passkey-skipped')).status).toBe(204)
  expect((await pages.get('/interaction')).body).toMatchObject({
    mfa: { passkeySkipped: true },
    next: { step: 'done' },
  })
  expect(await pages.post('/submit')).toMatchObject({ status: 200 })
  expect(await (await identified(person)).post('/submit')).toMatchObject({ status: 200 })
  // What one person said is not what another did.
  expect(await (await identified(await experience.createPerson())).post('/submit')).toMatchObject(preferred)
})

test('nobody puts it off or takes it up before it is known who they are', async () => {
  const pages = await experience.pages()
  const unknown = { status: 404, body: { code: 'session.identifier_not_found' } }
  expect(await pages.post('/profile/mfa/passkey-skipped')).toMatchObject(unknown)
  expect(await pages.post('/verification/web-authn/registration')).toMatchObject(unknown)
})
