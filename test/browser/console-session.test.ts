import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { inviteFirstOwner } from '../../issuer/console/invitations.ts'
import { chromium, startChromium } from '../support/chromium.ts'
import type { Person } from '../support/code-flow.ts'
import { consoleCookie, startTestConsole, type TestConsole } from '../support/console.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { startWebsite, type Website } from '../support/website.ts'

/** The session of the console by the rules of a real browser: a stand-in for its page shows whom it is used by. */

describe.skipIf(!chromium)('in Chromium', () => {
  let home: TestConsole
  let browser: Browser
  let elsewhere: Website
  beforeAll(async () => {
    home = await startTestConsole()
    browser = await startChromium()
    elsewhere = await startWebsite(() => ({ body: '<!doctype html><title>Elsewhere</title>' }))
  })
  afterAll(async () => {
    await browser?.close()
    await elsewhere?.close()
    await home?.close()
  })

  let context: BrowserContext
  let page: Page
  const problems: string[] = []
  beforeEach(async () => {
    problems.length = 0
    context = await browser.newContext()
    page = await context.newPage()
  })
  afterEach(() => context.close())

  const titleIs = (title: string) => expect.poll(() => page.title()).toBe(title)
  const url = (path: string) => `${home.issuer.baseUrl}/console${path}`

  const signIn = async (person: Person) => {
    await page.goto(url('/sign-in?return_to=/console/users'))
    await page.locator('input[name=identifier]').fill(person.username)
    await page.locator('input[name=password]').fill(person.password)
    await page.keyboard.press('Enter')
    await page.waitForURL(url('/users'))
    await titleIs(person.id)
  }

  test('signs in, and nothing on the way or in the page breaks a policy', async () => {
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    await signIn(await home.createMember('owner'))
    expect(problems).toEqual([])
    const cookies = await context.cookies(home.issuer.baseUrl)
    expect(cookies.find(({ name }) => name === consoleCookie)).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(cookies.filter(({ name }) => name.includes('-sign-in-'))).toEqual([])
    // Neither script nor storage has anything of it.
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')).toBe('[{},{}]')
  })

  test('a link on another site leads into the console, although the cookie does not come with it', async () => {
    const person = await home.createMember('auditor')
    await signIn(person)
    await page.goto(elsewhere.url)
    await page.setContent(`<a href="${url('/hooks')}">To the console</a>`)
    await page.getByText('To the console').click()
    await page.waitForURL(url('/hooks'))
    await titleIs(person.id)
  })

  test('another site can post nothing with it, by no form and by no script', async () => {
    await signIn(await home.createMember('owner'))
    const count = async () => (await home.issuer.sql('SELECT FROM users')).length
    const before = await count()
    await page.goto(elsewhere.url)
    await page.setContent(
      `<form method="post" enctype="text/plain" action="${url('/api/users')}"><input name='{"username":"forged","a":"' value='"}'><button>Send</button></form>`,
    )
    const answered = page.waitForResponse(url('/api/users'))
    await page.getByRole('button').click()
    expect((await answered).status()).toBe(403)
    await page.goto(elsewhere.url)
    const sent = await page.evaluate<string[]>(`Promise.all([
      fetch('${url('/api/users')}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"username":"forged"}' }),
      fetch('${url('/api/users')}', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{}' }),
      fetch('${url('/session')}', { credentials: 'include' }),
    ].map((answer) => answer.then(({ type, status }) => type + ' ' + status, () => 'refused')))`)
    expect(sent).toEqual(['refused', 'refused', 'refused'])
    expect(await count()).toBe(before)
  })

  test('another site cannot show it in a frame', async () => {
    await signIn(await home.createMember('owner'))
    await page.goto(elsewhere.url)
    const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'))
    await page.setContent(`<iframe src="${url('/users')}"></iframe>`)
    await refused
  })

  test('the page behind a link makes an owner with a passkey of the browser, who signs in with it again', async () => {
    // Of the other one there are owners.
    const own = await startTestConsole()
    onTestFinished(own.close)
    const address = (await inviteFirstOwner(own.issuer.database.query, own.issuer.baseUrl))!
    await page.goto(address)
    await titleIs('signed out')
    await attachAuthenticator(page)
    const status = await page.evaluate<number>(`(async () => {
      const token = location.hash.slice(1)
      const who = { token, name: 'Ada', primaryEmail: 'ada@owner.test' }
      const call = (path, body) => fetch('/console/setup' + path, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
      const options = await (await call('/passkey', who)).json()
      const passkey = await navigator.credentials.create({
        publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      return (await call('', { ...who, passkey: passkey.toJSON() })).status
    })()`)
    expect(status).toBe(201)
    await page.goto(`${own.issuer.baseUrl}/console/`)
    const [owner] = await own.issuer.sql<{ id: string }>(`SELECT id FROM users WHERE name = 'Ada'`)
    await titleIs(owner!.id)

    await context.clearCookies()
    await page.goto(`${own.issuer.baseUrl}/console/sign-in`)
    // The list under the field offers it, and the authenticator takes it.
    await titleIs(owner!.id)
  })
})
