import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Browser, Visit } from '../../support/browser.ts'
import { type CodeFlow, createCodeFlow, type Person } from '../../support/code-flow.ts'
import { createDeviceFlow, type DeviceFlow } from '../../support/device-flow.ts'
import { formOf, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** The pages on which a person signs in a device (RFC 8628 §3.3, §5). */

let issuer: TestIssuer
let flow: CodeFlow
let device: DeviceFlow
let application: TestApplication
let person: Person
let browser: Browser
let asked: { device_code: string; user_code: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2, config: { trustedProxies: ['127.0.0.1'] } })
  flow = createCodeFlow(issuer)
  device = createDeviceFlow(issuer, flow)
  application = await device.createClient()
})
beforeEach(async () => {
  person = await flow.createPerson()
  browser = flow.browser()
  asked = (await device.begin(application, {}, { address: '198.51.100.7' })).body
  await issuer.sql('DELETE FROM sign_in_failures')
})
afterAll(() => issuer.close())

const from = (address: string) => ({ 'x-forwarded-for': address })
const isConfirmation = ({ text }: Visit) => text.includes('on a device?')
const isPending = async () => (await device.poll(application, asked.device_code)).body.error
const wrong = 'BBBB-BBBB'

describe('the code', () => {
  test.each([
    ['as it is shown', (code: string) => code],
    ['in small letters, without the hyphen', (code: string) => code.toLowerCase().replace('-', '')],
    ['with spaces', (code: string) => ` ${code.replace('-', ' ')} `],
  ])('is taken %s', async (_, typed) => {
    const page = await device.enter(browser, typed(asked.user_code))
    expect(page.forms[0]!.names).toContain('password')
  })

  test('that is wrong is asked for again, with what was entered', async () => {
    const page = await device.enter(browser, wrong)
    expect(page.status).toBe(400)
    expect(page.text).toContain('This code is not right')
    expect(page.forms[0]!.fields['user_code']).toBe(wrong)
  })

  test('in a link is only filled in, and compared by the person', async () => {
    const page = await browser.get(`/device?user_code=${asked.user_code.toLowerCase()}`)
    expect(page.text).toContain('Does your device show the same code?')
    expect(page.forms[0]!.fields['user_code']).toBe(asked.user_code)
    // Whoever fetches links beforehand has looked nothing up, and counted nothing.
    expect(await issuer.sql('SELECT key FROM sign_in_failures')).toEqual([])
    expect((await browser.submit(page)).forms[0]!.names).toContain('password')
  })

  test('in a link that is none leads to an empty field', async () => {
    const page = await browser.get(`/device?user_code=${encodeURIComponent('"><script>alert(1)</script>')}`)
    expect(page.text).not.toContain('<script>alert')
    expect(page.forms[0]!.fields['user_code']).toBe('')
  })
})

describe('guessing', () => {
  test('ends after five wrong codes in one browser, the right one included', async () => {
    for (let tries = 0; tries < 5; tries++) expect((await device.enter(browser, wrong)).status).toBe(400)
    expect((await device.enter(browser, asked.user_code)).status).toBe(429)
    // Somebody else at the same address goes on.
    expect((await device.enter(flow.browser(), asked.user_code)).status).toBe(200)
  })

  test('ends after twenty wrong codes from one address, in however many browsers and at once', async () => {
    const headers = from('203.0.113.9')
    const answers = await Promise.all(
      Array.from({ length: 30 }, async () => (await device.enter(flow.browser(), wrong, headers)).status),
    )
    expect(answers.filter((status) => status === 400)).toHaveLength(20)
    expect(answers.filter((status) => status === 429)).toHaveLength(10)
    expect((await device.enter(browser, asked.user_code, headers)).status).toBe(429)
    expect((await device.enter(flow.browser(), asked.user_code, from('203.0.113.10'))).status).toBe(200)
  })

  test('counts no right code, and begins anew after an hour', async () => {
    for (let tries = 0; tries < 8; tries++) expect((await device.enter(browser, asked.user_code)).status).toBe(200)
    browser = flow.browser()
    for (let tries = 0; tries < 5; tries++) await device.enter(browser, wrong)
    await issuer.sql(`UPDATE sign_in_failures SET since = since - interval '1 hour'`)
    expect((await device.enter(browser, asked.user_code)).status).toBe(200)
  })

  test('by other networks of one IPv6 subscriber counts as his', async () => {
    for (let tries = 0; tries < 20; tries++)
      await device.enter(flow.browser(), wrong, from(`2001:db8:1:1::${tries.toString(16)}`))
    expect((await device.enter(browser, asked.user_code, from('2001:db8:1:1:ffff::1'))).status).toBe(429)
  })
})

describe('a form', () => {
  const send = async (headers: Record<string, string>, csrf?: string) => {
    const page = await browser.get('/device')
    const fields = { ...page.forms[0]!.fields, user_code: asked.user_code, ...(csrf !== undefined && { csrf }) }
    return browser.send('/device', { method: 'POST', body: formOf(fields), headers })
  }
  const own = () => ({ origin: new URL(issuer.baseUrl).origin, 'sec-fetch-site': 'same-origin' })

  test('of another site is refused, whatever it holds', async () => {
    const headersOfOthers: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { ...own(), 'sec-fetch-site': 'cross-site' },
      {},
    ]
    for (const headers of headersOfOthers) expect((await send(headers)).status).toBe(403)
    expect((await send(own())).status).toBe(303)
  })

  test("without this browser's value leads nowhere, and the page is there again", async () => {
    const others = (await flow.browser().get('/device')).forms[0]!.fields['csrf']!
    for (const csrf of ['', others]) {
      const page = await send(own(), csrf)
      expect({ status: page.status, location: page.location }).toEqual({ status: 403, location: undefined })
      expect((await browser.submit(page)).forms[0]!.names).toContain('password')
    }
  })

  test('of other kinds is refused', async () => {
    const page = await browser.get('/device')
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect((await browser.send('/device', { method: 'DELETE' })).status).toBe(405)
    const json = { ...own(), 'content-type': 'application/json' }
    expect((await browser.send('/device', { method: 'POST', body: '{}', headers: json })).status).toBe(415)
  })
})

describe('the confirmation', () => {
  test('names application, address and person, comes after a new sign-in, whoever has a session', async () => {
    await flow.signIn(browser, await flow.createClient(), person)
    const page = await device.enter(browser, asked.user_code)
    expect(page.forms[0]!.names).toContain('password')
    const confirmation = await browser.submit(page, flow.credentials(person))
    for (const text of ['<bdi>Shop</bdi>', '198.51.100.7', person.username, 'Refuse if you did not start it yourself'])
      expect(confirmation.text).toContain(text)
    expect(await isPending()).toBe('authorization_pending')
  })

  test('of a third-party application asks for consent, and withdrawing that ends its tokens', async () => {
    application = await device.createClient({ isThirdParty: true })
    asked = (await device.begin(application, { scope: 'openid profile offline_access' })).body
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    expect(isConfirmation(confirmation)).toBe(true)
    expect(confirmation.text).toContain('180')
    await device.decide(browser, confirmation, 'allow')
    const tokens = await device.poll(application, asked.device_code)
    expect(tokens.body.scope).toBe('openid profile offline_access')
    const consents = await issuer.sql('SELECT scopes FROM consents WHERE client_id = $1', [application.id])
    expect(consents).toEqual([{ scopes: ['openid', 'profile', 'offline_access'] }])
    await issuer.sql('UPDATE consents SET revoked_at = now() WHERE client_id = $1', [application.id])
    expect(await flow.refresh(application, tokens.body.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'consent_revoked' },
    })
    application = await device.createClient()
  })

  test('that comes too late signs nobody in, and says how to start again', async () => {
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    await issuer.sql('UPDATE device_codes SET expires_at = now()')
    const late = await device.decide(browser, confirmation, 'allow')
    expect(late.status).toBe(400)
    expect(late.text).toContain('href="/device"')
    expect(browser.cookies.has('surrogate_session')).toBe(false)
    expect(await isPending()).toBe('expired_token')
    expect(await issuer.sql('SELECT id FROM authorizations WHERE client_id = $1', [application.id])).toEqual([])
  })

  test('of two people who entered the same code: the first decides, the second changes nothing', async () => {
    const other = flow.browser()
    const second = await flow.createPerson()
    const pages = [
      await device.toConfirmation(browser, asked.user_code, person),
      await device.toConfirmation(other, asked.user_code, second),
    ]
    const answers = await Promise.all([
      device.decide(browser, pages[0]!, 'allow'),
      device.decide(other, pages[1]!, 'allow'),
    ])
    expect(answers.map(({ text }) => text.includes('Your device is signed in')).toSorted()).toEqual([false, true])
    expect(await device.poll(application, asked.device_code)).toMatchObject({ status: 200 })
    expect(await issuer.sql('SELECT user_id FROM authorizations WHERE client_id = $1', [application.id])).toHaveLength(
      1,
    )
    // A code that was decided on is none any more.
    expect((await device.enter(flow.browser(), asked.user_code)).status).toBe(400)
  })

  test('counts for the person of its page alone, whoever has the session by then', async () => {
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    const other = await flow.createPerson()
    const before = browser.cookies.get('surrogate_session')
    await flow.signIn(browser, await flow.createClient(), other, { prompt: 'login' })
    expect(browser.cookies.get('surrogate_session')).not.toBe(before)
    await device.decide(browser, confirmation, 'allow')
    const tokens = await device.poll(application, asked.device_code)
    expect(tokens.status).toBe(200)
    const userinfo = await fetch(`${issuer.url}/oidc/me`, {
      headers: { authorization: `Bearer ${tokens.body.access_token}` },
    })
    expect(await userinfo.json()).toMatchObject({ sub: person.id })
  })

  test('sent by another person than the page was shown to asks that one again', async () => {
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    const other = await flow.createPerson()
    const signIn = await device.decide(browser, confirmation, 'another')
    const again = await browser.submit(signIn, flow.credentials(other))
    expect(again.text).toContain(other.username)
    // The page that the first person left behind.
    expect(isConfirmation(await device.decide(browser, confirmation, 'allow'))).toBe(true)
    expect(await isPending()).toBe('authorization_pending')
  })

  test('is of the browser that entered the code', async () => {
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    const thief = flow.browser()
    await thief.get('/device')
    expect((await thief.get(confirmation.url)).status).toBe(400)
    expect((await device.decide(thief, confirmation, 'allow')).status).toBe(400)
    expect(await isPending()).toBe('authorization_pending')
  })

  test('sent twice is one', async () => {
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    for (const answer of await Promise.all([0, 1].map(() => device.decide(browser, confirmation, 'allow'))))
      expect(answer.text).toContain('Your device is signed in')
    expect(await device.poll(application, asked.device_code)).toMatchObject({ status: 200 })
  })
})
