import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies, shippedPolicies } from '../../../policies/decide.ts'
import type { Visit } from '../../support/browser.ts'
import { parametersOf } from '../../support/code-flow.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from '../../support/experience.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { solvedOn } from '../../support/proof-of-work.ts'
import { writeRules } from '../../support/rules.ts'

/** What rules of the operator say, as people and pages that are not ours meet it. */

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
`

let experience: TestExperience
/** Applications by the names that the rules know. */
const clients: Record<string, TestApplication> = {}
beforeAll(async () => {
  const { folder, remove } = await writeRules({
    'signin.rego': await readFile(join(shippedPolicies, 'signin.rego'), 'utf8'),
    'own.rego': own,
  })
  const policies = await loadPolicies({ path: folder, logger: silentLogger }).finally(remove)
  experience = await startExperience({ policies, settings: { mfa: { factors: ['Totp'], policy: 'NoPrompt' } } })
  for (const name of ['Tested', 'Intranet', 'Intranet at night']) {
    const client = await experience.flow.createClient()
    await experience.issuer.api('PATCH', `/applications/${client.id}`, { name })
    clients[name] = client
  }
})
afterAll(() => experience?.close())

const headingOf = ({ text }: Visit) => /<h1>([\s\S]*?)<\/h1>/.exec(text)?.[1]
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

  test('gets nothing by a session that there is: what needs no proof was decided when it began', async () => {
    const person = await experience.createPerson()
    const browser = experience.flow.browser()
    expect(await experience.flow.signIn(browser, experience.client, person)).toBeTypeOf('string')
    const before = await opened(person)
    const asked = await experience.flow.ask(browser, clients['Intranet']!, { prompt: 'login' })
    expect(headingOf(await browser.submit(asked, credentials(person)))).toBe('You do not have access')
    expect(await opened(person)).toEqual(before)
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
