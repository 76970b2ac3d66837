import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { visitAccount } from '../../../support/account-pages.ts'
import { headingOf } from '../../../support/browser.ts'
import { type CodeFlow, createCodeFlow } from '../../../support/code-flow.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

/** How one gets to one's account, and who does not. */

let issuer: TestIssuer
let flow: CodeFlow
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
})
afterAll(() => issuer.close())

describe('without a session', () => {
  test('one signs in, and comes back to the page that one wanted, with no code of anybody', async () => {
    const person = await flow.createPerson()
    const browser = flow.browser()
    const page = await browser.get('/account/sessions')
    expect(new URL(page.url).pathname).toMatch(/^\/sign-in\/[0-9a-z]{21}$/)
    expect(page.text).toContain('Your account')
    const answer = await browser.submit(page, flow.credentials(person), { follow: false })
    expect(answer).toMatchObject({ status: 303, location: `${issuer.baseUrl}/account/sessions` })
    const arrived = await browser.get(answer.location!)
    expect(headingOf(arrived)).toBe('Devices')
    const [row] = await issuer.sql<{ count: string }>('SELECT count(*) FROM authorizations WHERE user_id = $1', [
      person.id,
    ])
    expect(Number(row!.count)).toBe(0)
  })

  test('the audit trail and the event name the account pages', async () => {
    const person = await flow.createPerson()
    await visitAccount(issuer, person).open('/account')
    const [log] = await issuer.sql<{ application_id: string }>(
      `SELECT application_id FROM logs WHERE user_id = $1 AND key = 'Interaction.End'`,
      [person.id],
    )
    expect(log?.application_id).toBe('account-center')
    const [event] = await issuer.sql<{ payload: Buffer }>(
      `SELECT payload FROM outbox WHERE type = 'PostSignIn' AND entity_id = $1`,
      [person.id],
    )
    expect(JSON.parse(event!.payload.toString())).toMatchObject({ application: { id: 'account-center' } })
  })

  test('an address that somebody puts into a link leads nowhere', async () => {
    const person = await flow.createPerson()
    for (const link of [
      '/account?redirect_uri=https://evil.example/',
      '/account?next=//evil.example/',
      '/account/confirm?next=https://evil.example/',
      '/account/confirm?next=/account/../../evil',
    ]) {
      const arrived = await visitAccount(issuer, person).open(link)
      expect(new URL(arrived.url).origin, link).toBe(issuer.baseUrl)
      expect(arrived.text, link).not.toContain('evil')
    }
    for (const unknown of ['/account//evil.example/', '/account/%2e%2e', '/account/nothing']) {
      expect((await flow.browser().get(unknown)).status, unknown).toBe(404)
    }
  })

  test('whoever breaks the sign-in off is not asked again and again', async () => {
    const browser = flow.browser()
    const page = await browser.get('/account/applications')
    const ended = await browser.submit(page, { choice: 'cancel' })
    expect(headingOf(ended)).toBe('You are not signed in')
    expect(ended.text).toContain('href="/account/applications"')
  })

  test('two tabs, and an application beside them, all get where they wanted to', async () => {
    const person = await flow.createPerson()
    const client = await flow.createClient()
    const browser = flow.browser()
    const first = await browser.get('/account/sessions')
    const second = await browser.get('/account')
    const third = await flow.ask(browser, client)
    const led = async (page: typeof first) =>
      (await browser.submit(page, flow.credentials(person), { follow: false })).location
    expect(await led(second)).toBe(`${issuer.baseUrl}/account`)
    expect(await led(third)).toMatch(/^https:\/\/shop\.example\.test\/callback\?code=/)
    expect(await led(first)).toBe(`${issuer.baseUrl}/account/sessions`)
  })

  test('nobody makes an application of it: it has no authorization endpoint and no tokens', async () => {
    const asked = await flow.browser().get(flow.authorizationUrl({ id: 'account-center' }))
    expect(asked.status).toBe(400)
    expect(await issuer.token({ id: 'account-center' }, { grant_type: 'authorization_code', code: 'x' })).toMatchObject(
      {
        status: 401,
        body: { error: 'invalid_client' },
      },
    )
  })

  test('a link of a sign-in to the account is of no use in another browser', async () => {
    const page = await flow.browser().get('/account')
    expect((await flow.browser().get(page.url)).status).toBe(400)
  })

  test('a page in which others frame it shows nothing and leaves no row behind', async () => {
    const before = await issuer.sql('SELECT id FROM interactions')
    const framed = await flow.browser().send('/account', { headers: { 'sec-fetch-dest': 'iframe' } })
    expect(framed.status).toBe(200)
    expect(headingOf(framed)).toBe('You are not signed in')
    expect(await issuer.sql('SELECT id FROM interactions')).toHaveLength(before.length)
  })
})

describe('a session', () => {
  test('of an application opens the account too, on every instance', async () => {
    const person = await flow.createPerson()
    const browser = flow.browser()
    await flow.signIn(browser, await flow.createClient(), person)
    expect(headingOf(await browser.get('/account'))).toBe('Your account')
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const other = await fetch(`${issuer.urls[1]}/account`, { headers: { cookie } })
    expect(await other.text()).toContain('<h1>Your account</h1>')
  })

  test('that has ended shows nothing, and a form that was open says so without losing its way', async () => {
    const person = await flow.createPerson()
    const { browser, open } = visitAccount(issuer, person)
    const visitor = visitAccount(issuer, person)
    await visitor.confirm()
    const page = await visitor.open('/account/data')
    await issuer.sql(`UPDATE sessions SET ended_at = now(), end_reason = 'logout' WHERE user_id = $1`, [person.id])
    expect(new URL((await browser.get('/account')).url).pathname).toMatch(/^\/sign-in\//)
    const refused = await visitor.browser.submit(page, { choice: 'download' })
    expect(refused.status).toBe(401)
    expect(headingOf(refused)).toBe('You are signed out')
    expect(refused.text).toContain('href="/account/data"')
    void open
  })

  test('of somebody suspended opens nothing', async () => {
    const person = await flow.createPerson()
    const visitor = visitAccount(issuer, person)
    await visitor.open('/account')
    await issuer.api('PATCH', `/users/${person.id}/is-suspended`, { isSuspended: true })
    expect(new URL((await visitor.browser.get('/account')).url).pathname).toMatch(/^\/sign-in\//)
  })
})

describe('every answer', () => {
  test('has the headers of the sign-in pages; forms lead to us alone', async () => {
    const person = await flow.createPerson()
    const page = await visitAccount(issuer, person).open('/account/sessions')
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'same-origin',
    })
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("form-action 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("script-src 'none'")
  })

  test.each([
    ['another site', { origin: 'https://evil.example' }],
    ['a sandbox', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { 'sec-fetch-site': 'same-site' }],
  ])('a form from %s is refused, even with the right token', async (_name, headers) => {
    const person = await flow.createPerson()
    const visitor = visitAccount(issuer, person)
    await visitor.confirm()
    const page = await visitor.open('/account/data')
    const refused = await visitor.browser.submit(page, { choice: 'delete', sure: 'yes' }, { with: 'sure', headers })
    expect(refused.status).toBe(403)
    expect((await issuer.api('GET', `/users/${person.id}`)).status).toBe(200)
  })

  test('the token of a form is of one page and one session', async () => {
    const [ada, bob] = [await flow.createPerson(), await flow.createPerson()]
    const [adas, bobs] = [visitAccount(issuer, ada), visitAccount(issuer, bob)]
    await adas.confirm()
    await bobs.confirm()
    const page = await adas.open('/account/data')
    const ofBob = (await bobs.open('/account/data')).forms[0]!.fields['csrf']!
    const ofSessions = (await adas.open('/account/data')).forms[0]!.fields['csrf']!
    for (const csrf of [ofBob, '', 'x', `${ofSessions}x`]) {
      const refused = await adas.browser.submit(page, { choice: 'delete', sure: 'yes', csrf }, { with: 'sure' })
      expect(refused.status, csrf).toBe(403)
    }
    expect((await issuer.api('GET', `/users/${ada.id}`)).status).toBe(200)
  })

  test('what a link says went well is not repeated', async () => {
    const person = await flow.createPerson()
    const page = await visitAccount(issuer, person).open('/account/sessions')
    expect(page.status).toBe(200)
    const visitor = visitAccount(issuer, person)
    await visitor.open('/account')
    const lied = await visitor.browser.get('/account/sessions?done=accountSessionsEnded&by=AAAAAAAAAAAAAAAA')
    expect(lied.text).not.toContain('All other devices are signed out.')
  })
})
