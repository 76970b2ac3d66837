import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies, shippedPolicies } from '../../../policies/decide.ts'
import { headingOf, type Visit } from '../../support/browser.ts'
import { parametersOf } from '../../support/code-flow.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from '../../support/experience.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { solvedOn } from '../../support/proof-of-work.ts'
import { writeRules } from '../../support/rules.ts'

/** What rules of the operator say, as people and pages that are not ours meet it. */

const shippedRules = await readFile(join(shippedPolicies, 'signin.rego'), 'utf8')

/** Seconds since 1970. */
const closing = Math.floor(Date.now() / 1_000) + 3_600
const night = (closing + 60) * 1_000

const own = `package surrogate.signin

require contains "captcha" if {
  input.client.name == "Tested"
  input.stage != "prove"
}
deny contains "not_an_employee" if input.client.name == "Intranet"
deny contains "after_hours" if {
  input.client.name == "Intranet at night"
  input.stage == "finish"
}
deny contains "office_closed" if {
  input.client.name in {"Office", "Partner of the office"}
  input.now > ${closing}
}
require contains "mfa" if input.client.name == "Payroll"
require contains "phr" if input.client.name == "Vault"
deny contains "as_described" if {
  input.client.name == "Told"
  input.stage == "session"
  input.amr == ["pwd"]
  input.acr == "urn:surrogate:acr:basic"
  input.factors == {"available": ["totp"], "used": []}
  input.subject.roles == ["teller"]
  input.device.known
  input.failures == 0
}
idle_ttl contains "no time" if input.client.name == "Broken"
`

let experience: TestExperience
/** Applications by the names that the rules know. */
const clients: Record<string, TestApplication> = {}
beforeAll(async () => {
  const { folder, remove } = await writeRules({
    'signin.rego': shippedRules,
    'own.rego': own,
  })
  const policies = await loadPolicies({ path: folder, logger: silentLogger }).finally(remove)
  experience = await startExperience({ policies, settings: { mfa: { factors: ['Totp'], policy: 'NoPrompt' } } })
  const names = [
    'Tested',
    'Intranet',
    'Intranet at night',
    'Office',
    'Partner of the office',
    'Payroll',
    'Vault',
    'Told',
  ]
  for (const name of [...names, 'Broken']) {
    const client = await experience.flow.createClient({ isThirdParty: name.startsWith('Partner') })
    await experience.issuer.api('PATCH', `/applications/${client.id}`, { name })
    clients[name] = client
  }
})
afterAll(() => experience?.close())

const credentials = ({ username, password }: ExperiencePerson) => ({
  identifier: username,
  password,
  choice: 'sign_in',
})

/** After the password, on our pages. */
const passwordGiven = async (name: string, person: ExperiencePerson, browser = experience.flow.browser()) => {
  const page = await experience.flow.ask(browser, clients[name]!, { prompt: '' })
  return { browser, page, next: await browser.submit(page, credentials(person)) }
}

const opened = async (person: ExperiencePerson) => {
  const { sql } = experience.issuer
  const [sessions, authorizations] = [
    await sql('SELECT FROM sessions WHERE user_id = $1', [person.id]),
    await sql('SELECT FROM authorizations WHERE user_id = $1', [person.id]),
  ]
  return { sessions: sessions.length, authorizations: authorizations.length }
}
const nothing = { sessions: 0, authorizations: 0 }

/** Written a moment later than the answer. */
const blockedEntries = (person: ExperiencePerson) =>
  experience.issuer.sql<{ result: string; application_id: string; payload: Record<string, unknown> }>(
    `SELECT result, application_id, payload FROM logs WHERE key = 'Interaction.SignIn.Blocked' AND user_id = $1`,
    [person.id],
  )

describe('whom rules deny the sign-in', () => {
  test.each([
    ['Intranet', 'not_an_employee'],
    ['Intranet at night', 'after_hours'],
  ])('reads so on a page, gets neither session nor code, and the operator reads why (%s)', async (name, reason) => {
    const person = await experience.createPerson()
    const { browser, page, next } = await passwordGiven(name, person)
    expect([next.status, headingOf(next), next.location]).toEqual([403, 'You do not have access', undefined])
    // What the rules are is for the operator. The reference leads there.
    expect(next.text).not.toContain(reason)
    // Nothing that is sent to the same address leads around it.
    for (const choice of ['sign_in', 'allow', 'continue', 'solved', 'skip']) {
      const forced = await browser.submit(next, { ...credentials(person), choice })
      expect(forced.location, choice).toBeUndefined()
    }
    expect((await browser.get(page.url)).location).toBeUndefined()
    expect(browser.cookies.has('surrogate_session')).toBe(false)
    expect(await opened(person)).toEqual(nothing)
    expect(await experience.events('PostSignIn')).not.toContainEqual(expect.objectContaining({ userId: person.id }))
    await expect
      .poll(() => blockedEntries(person))
      .toContainEqual({
        result: 'Error',
        application_id: clients[name]!.id,
        payload: expect.objectContaining({ reasons: ['denied_by_rules'], reason, requestId: expect.any(String) }),
      })
  })

  test('may be somebody else: the page leads back to signing in', async () => {
    const { browser, next } = await passwordGiven('Intranet', await experience.createPerson())
    const again = await browser.submit(next, { choice: 'another' })
    expect(again.forms[0]?.names).toContain('password')
  })

  test('is told so only after the password, and before a second factor is asked for', async () => {
    const person = await experience.createPerson()
    await experience.addTotp(person)
    const wrong = await passwordGiven('Intranet', { ...person, password: 'wrong' })
    expect([wrong.next.status, headingOf(wrong.next)]).toEqual([400, 'Sign in'])
    expect(headingOf((await passwordGiven('Intranet', person)).next)).toBe('You do not have access')
  })

  test.each([
    ['Intranet', 'not_an_employee'],
    ['Intranet at night', 'after_hours'],
  ])('is told why by the JSON API, and the operator too (%s)', async (name, reason) => {
    const person = await experience.createPerson()
    const pages = await experience.pages({ client: clients[name]! })
    const identifier = { type: 'username', value: person.username }
    const { body } = await pages.post('/verification/password', { identifier, password: person.password })
    await pages.post('/identification', body)
    for (let tries = 0; tries < 2; tries++) {
      expect(await pages.post('/submit')).toMatchObject({
        status: 403,
        body: { code: 'session.denied', data: { reason } },
      })
    }
    // The browser that goes on all the same sees the page.
    const page = await pages.browser.get(`/oidc/auth/${pages.interactionId}`)
    expect([page.status, headingOf(page), page.location]).toEqual([403, 'You do not have access', undefined])
    expect(pages.browser.cookies.has('surrogate_session')).toBe(false)
    expect(await opened(person)).toEqual(nothing)
    // However often it is looked at.
    const told = { interactionId: pages.interactionId, reasons: ['denied_by_rules'], reason }
    await expect
      .poll(() => blockedEntries(person))
      .toEqual([expect.objectContaining({ payload: expect.objectContaining(told) })])
  })
})

describe('a session that leads to another application', () => {
  afterEach(() => {
    experience.clock.now = Date.now()
  })

  /** Signed in with a password, where nothing more is required. */
  const signedIn = async () => {
    const person = await experience.createPerson()
    const browser = experience.flow.browser()
    expect(await experience.flow.signIn(browser, experience.client, person)).toBeTypeOf('string')
    const to = (name: string, parameters: Record<string, string> = {}) =>
      experience.flow.ask(browser, clients[name]!, { prompt: '', ...parameters })
    return { person, browser, to, before: await opened(person) }
  }

  test.each(['Intranet', 'Office'])(
    'gets nothing where the rules deny it, nor by signing in again (%s)',
    async (name) => {
      const { person, browser, to, before } = await signedIn()
      if (name === 'Office') {
        expect(parametersOf(await to(name))).toHaveProperty('code')
        experience.clock.now = night
      }
      const now = await opened(person)
      const reason = { Intranet: 'not_an_employee', Office: 'office_closed' }[name]!
      const page = await to(name)
      expect([page.status, headingOf(page), page.location]).toEqual([403, 'You do not have access', undefined])
      expect(page.text).not.toContain(reason)
      for (const choice of ['sign_in', 'allow', 'continue', 'solved', 'skip']) {
        expect((await browser.submit(page, { choice })).location, choice).toBeUndefined()
      }
      await expect
        .poll(() => blockedEntries(person))
        .toEqual([
          {
            ...{ result: 'Error', application_id: clients[name]!.id },
            payload: expect.objectContaining({ reasons: ['denied_by_rules'], reason, requestId: expect.any(String) }),
          },
        ])
      const again = await browser.submit(await to(name, { prompt: 'login' }), credentials(person))
      expect(headingOf(again)).toBe('You do not have access')
      expect(await opened(person)).toEqual(now)
      expect(before.sessions).toBe(1)
      // Elsewhere it goes on.
      expect(parametersOf(await to('Tested'))).toHaveProperty('code')
    },
  )

  test('may be somebody else’s next', async () => {
    const { browser, to } = await signedIn()
    const again = await browser.submit(await to('Intranet'), { choice: 'another' })
    expect(again.forms[0]?.names).toContain('password')
    const refused = await browser.submit(again, credentials(await experience.createPerson()))
    expect(headingOf(refused)).toBe('You do not have access')
  })

  test('is refused without pages in the words of OpenID Connect, and told to the operator once', async () => {
    const { person, to } = await signedIn()
    for (let tries = 0; tries < 2; tries++) {
      expect(parametersOf(await to('Intranet', { prompt: 'none' }))).toMatchObject({
        ...{ error: 'access_denied', error_description: 'The user may not sign in.' },
      })
    }
    expect(parametersOf(await to('Payroll', { prompt: 'none' }))).toMatchObject({ error: 'login_required' })
    await expect
      .poll(() => blockedEntries(person))
      .toEqual([expect.objectContaining({ payload: expect.objectContaining({ reason: 'not_an_employee' }) })])
  })

  test('is refused by the JSON API as a sign-in is', async () => {
    const { browser } = await signedIn()
    const pages = await experience.pages({ browser, client: clients['Intranet']! })
    expect(await pages.post('/submit')).toMatchObject({
      ...{ status: 403, body: { code: 'session.denied', data: { reason: 'not_an_employee' } } },
    })
    const weak = await experience.pages({ browser, client: clients['Payroll']! })
    expect(await weak.post('/submit')).toMatchObject({ body: { code: 'session.identifier_not_found' } })
  })

  test('is asked about again when the person decides: it was day when the page came', async () => {
    const { person, browser, to, before } = await signedIn()
    const page = await to('Partner of the office')
    expect(page.forms[0]?.names).toContain('choice')
    experience.clock.now = night
    const refused = await browser.submit(page, { choice: 'allow' })
    expect([refused.status, headingOf(refused)]).toEqual([403, 'You do not have access'])
    expect(headingOf(await to('Partner of the office'))).toBe('You do not have access')
    expect(await opened(person)).toEqual(before)
  })

  test('gets two factors where the rules require them, and is then enough', async () => {
    const { person, browser, to, before } = await signedIn()
    const secret = await experience.addTotp(person)
    const page = await to('Payroll')
    expect(page.text).toContain('asks for a stronger proof that it is you')
    expect(page.forms[0]?.names).toContain('password')
    const mfa = await browser.submit(page, credentials(person))
    expect(mfa.location).toBeUndefined()
    expect(await opened(person)).toEqual(before)
    const back = await browser.submit(mfa, { choice: 'verify', code: experience.totp(secret) }, { with: 'code' })
    expect(parametersOf(back)).toHaveProperty('code')
    const sessions = await experience.issuer.sql('SELECT acr FROM sessions WHERE user_id = $1', [person.id])
    expect(sessions).toEqual([{ acr: 'urn:surrogate:acr:mfa' }])
    expect(parametersOf(await to('Payroll', { prompt: 'none' }))).toHaveProperty('code')
    // A passkey it is not.
    expect(parametersOf(await to('Vault', { prompt: 'none' }))).toMatchObject({ error: 'login_required' })
  })

  test('is told to the rules as it is, with the person of now', async () => {
    const { person, to } = await signedIn()
    expect(parametersOf(await to('Told'))).toHaveProperty('code')
    await experience.addTotp(person)
    const role = await experience.issuer.api('POST', '/roles', { name: 'teller', description: 'At the counter.' })
    await experience.issuer.api('POST', `/users/${person.id}/roles`, { roleIds: [role.body.id] })
    expect(headingOf(await to('Told'))).toBe('You do not have access')
  })

  test('is not tested for being a machine: that was for who signed in', async () => {
    const { to } = await signedIn()
    expect(parametersOf(await to('Tested'))).toHaveProperty('code')
  })

  test('leads nowhere while the rules give no decision', async () => {
    const { person, to, before } = await signedIn()
    for (const prompt of ['', 'none']) {
      const page = await to('Broken', { prompt })
      expect([page.status, page.location]).toEqual([503, undefined])
    }
    expect(await opened(person)).toEqual(before)
  })
})

test.each([
  ['no rules of one’s own', false],
  ['a copy of the shipped rules', true],
])('with %s a session leads on, whatever the settings ask of who signs in', async (_, isCopied) => {
  const { folder, remove } = await writeRules({ 'signin.rego': shippedRules })
  const policies = isCopied ? await loadPolicies({ path: folder, logger: silentLogger }) : undefined
  await remove()
  const settings = { mfa: { factors: ['Totp' as const], policy: 'Mandatory' as const } }
  const strict = await startExperience({ ...(policies && { policies }), settings })
  onTestFinished(() => strict.close())
  const [person, browser] = [await strict.createPerson(), strict.flow.browser()]
  await strict.issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: [], policy: 'NoPrompt' } })
  await expect.poll(() => strict.flow.signIn(browser, strict.client, person).catch(() => '')).not.toBe('')
  await strict.issuer.api('PATCH', '/sign-in-exp', settings)
  await strict.addTotp(person)
  const other = await strict.flow.createClient()
  expect(parametersOf(await strict.flow.ask(browser, other, { prompt: 'none' }))).toHaveProperty('code')
})

test('whoever has a second factor that rules did not demand adds no other by the password alone', async () => {
  const laxRules = `package surrogate.signin

# METADATA
# entrypoint: true
decision := true
`
  const { folder, remove } = await writeRules({ 'signin.rego': laxRules })
  const policies = await loadPolicies({ path: folder, logger: silentLogger }).finally(remove)
  const lax = await startExperience({
    policies,
    settings: { mfa: { factors: ['Totp', 'WebAuthn'], policy: 'NoPrompt' } },
  })
  onTestFinished(() => lax.close())
  const person = await lax.createPerson()
  const beginsWithPassword = async () => {
    const pages = await lax.pages({ client: lax.client })
    const identifier = { type: 'username', value: person.username }
    const { body } = await pages.post('/verification/password', { identifier, password: person.password })
    await pages.post('/identification', body)
    return pages.post('/verification/web-authn/registration')
  }
  expect((await beginsWithPassword()).status).toBe(200)
  await lax.addTotp(person)
  expect(await beginsWithPassword()).toMatchObject({
    status: 403,
    body: { code: 'session.mfa.require_mfa_verification' },
  })
})

describe('of whom rules require the test for machines', () => {
  const atTheStep = async () => {
    const person = await experience.createPerson()
    const { browser, page, next } = await passwordGiven('Tested', person)
    expect(page.text).not.toContain('data-challenge')
    expect(headingOf(next)).toBe('One short check')
    const submit = (from: Visit, values: Record<string, string>) => browser.submit(from, values, { with: 'choice' })
    return { browser, person, step: next, submit }
  }
  const signedIn = async (visit: Visit, person: ExperiencePerson) => {
    expect(parametersOf(visit)).toHaveProperty('code')
    expect(await opened(person)).toEqual({ sessions: 1, authorizations: 1 })
  }

  test('passes it by its answer alone', async () => {
    const { person, step, submit } = await atTheStep()
    let shown = step
    for (const captcha of ['', 'made.up.1']) {
      shown = await submit(shown, { choice: 'solved', captcha })
      expect([shown.status, headingOf(shown)]).toEqual([400, 'One short check'])
    }
    expect(await opened(person)).toEqual(nothing)
    await signedIn(await submit(shown, { choice: 'solved', captcha: solvedOn(shown) }), person)
  })

  test('or by a code that comes by mail to the person, and to nobody else', async () => {
    const { person, step, submit } = await atTheStep()
    const check = await submit(step, { choice: 'send', address: 'mallory@example.test' })
    expect(check.text).not.toContain('data-challenge')
    expect(await experience.messagesTo('mallory@example.test')).toEqual([])
    const code = await experience.codeTo(person.email)
    const wrong = await submit(check, { choice: 'verify', code: code === '000000' ? '000001' : '000000' })
    expect(wrong.status).toBe(400)
    await signedIn(await submit(wrong, { choice: 'verify', code }), person)
  })

  test('and can leave, signed in by nothing', async () => {
    const { browser, person, step, submit } = await atTheStep()
    const left = parametersOf(await submit(step, { choice: 'cancel' }))
    expect(left).toMatchObject({ error: 'access_denied' })
    expect(left).not.toHaveProperty('code')
    expect(browser.cookies.has('surrogate_session')).toBe(false)
    expect(await opened(person)).toEqual(nothing)
  })
})
