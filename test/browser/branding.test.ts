import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type People, type PeopleClient, startPeople } from '../support/people.ts'
import { until } from '../support/until.ts'

/** Pages with what an operator puts on them, as a real browser shows them. */

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  let client: PeopleClient
  let logo: string

  const patch = async (body: unknown) => {
    const { status, body: answer } = await people.issuer.api('PATCH', '/sign-in-exp', body)
    expect([status, answer.code]).toEqual([200, undefined])
  }

  beforeAll(async () => {
    people = await startPeople()
    client = await people.createClient({ name: 'Harbour Shop' })
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="160" height="40" viewBox="0 0 160 40">
      <script>document.documentElement.setAttribute('data-ran', '1'); alert(1)</script>
      <rect width="160" height="40" rx="8" fill="#0a7"/><circle cx="20" cy="20" r="12" fill="#fff"/></svg>`
    const { body } = await people.issuer.api('POST', '/assets', { content: Buffer.from(svg).toString('base64') })
    logo = body.url
    await patch({
      color: { primaryColor: '#ffcc00', darkPrimaryColor: '#1f3a5f' },
      branding: { logoUrl: logo, favicon: logo },
      displayName: 'Harbour Bank',
      termsOfUseUrl: 'https://harbour.test/terms',
      privacyPolicyUrl: 'https://harbour.test/privacy',
      supportWebsiteUrl: 'https://harbour.test/help',
      customContent: { 'sign_in.note': 'We never ask for your password by telephone.' },
      customCss: `main { border-top: 6px solid rgb(1 2 3); }\nh1::after { content: " ⚓"; }`,
    })
  })
  afterAll(() => people?.close())

  const show = async (options: BrowserContextOptions, look: (page: Page, loaded: string[]) => Promise<void>) => {
    const context = await people.browser.newContext(options)
    const page = await context.newPage()
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    const refused: string[] = []
    page.on('console', (message) => refused.push(message.text()))
    try {
      await page.goto(client.authorizationUrl())
      await page.getByRole('heading').waitFor()
      await look(page, requests)
      expect(refused.filter((text) => /Content Security Policy|Failed to load/.test(text))).toEqual([])
    } finally {
      await context.close()
    }
  }

  /** Scripts of the page, as text: the types of browsers are not those of this program. */
  const styleOf = (page: Page, selector: string) =>
    page.evaluate<Record<string, string>>(`(() => {
      const { backgroundColor, color, borderTopColor, borderTopWidth } =
        getComputedStyle(document.querySelector('${selector}'))
      return { backgroundColor, color, borderTopColor, borderTopWidth }
    })()`)

  test.each([
    ['light', 'rgb(255, 204, 0)', 'rgb(0, 0, 0)'],
    ['dark', 'rgb(31, 58, 95)', 'rgb(255, 255, 255)'],
  ] as const)('the %s theme has the colours, the logo and the stylesheet', async (colorScheme, ground, text) => {
    await show({ colorScheme }, async (page, requests) => {
      expect(await styleOf(page, 'button')).toMatchObject({ backgroundColor: ground, color: text })
      expect(await styleOf(page, 'main')).toMatchObject({ borderTopColor: 'rgb(1, 2, 3)', borderTopWidth: '6px' })
      await until(async () =>
        expect(await page.evaluate(`document.querySelector('.brand img').naturalWidth`)).toBe(160),
      )
      expect(await page.locator('footer').innerText()).toMatch(/Harbour Bank\s+Terms of use\s+Privacy\s+Help/)
      expect(await page.getByText('We never ask for your password by telephone.').isVisible()).toBe(true)
      // Nothing comes from anywhere else.
      expect(requests.filter((url) => !url.startsWith(people.issuer.baseUrl))).toEqual([])
    })
  })

  test('nothing is cut off at a width of 320 pixels', async () => {
    await show({ viewport: { width: 320, height: 640 } }, async (page) => {
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    })
  })

  test('T 44: a picture with a script in it runs nothing, on a page and by itself', async () => {
    const answer = await fetch(`${people.issuer.url}${logo}`)
    expect(answer.headers.get('content-type')).toBe('image/svg+xml')
    expect(answer.headers.get('content-security-policy')).toContain('sandbox')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('cache-control')).toContain('immutable')
    const context = await people.browser.newContext()
    const page = await context.newPage()
    let hasAsked = false
    page.on('dialog', (dialog) => {
      hasAsked = true
      void dialog.dismiss()
    })
    await page.goto(`${people.issuer.url}${logo}`)
    expect(await page.locator('svg').getAttribute('data-ran')).toBeNull()
    await page.goto(client.authorizationUrl())
    await page.getByAltText('Harbour Bank').waitFor()
    expect(hasAsked).toBe(false)
    await context.close()
  })

  test('an application has its own above the issuer’s', async () => {
    const own = await people.createClient({ name: 'Fish Market' })
    const path = `/applications/${own.id}/sign-in-experience`
    const { status } = await people.issuer.api('PATCH', path, {
      color: { primaryColor: '#aa0000' },
      displayName: 'Fish Market',
      customCss: 'main { border-top: 2px solid rgb(4 5 6); }',
    })
    expect(status).toBe(200)
    const context = await people.browser.newContext()
    const page = await context.newPage()
    await page.goto(own.authorizationUrl())
    expect(await styleOf(page, 'button')).toMatchObject({ backgroundColor: 'rgb(170, 0, 0)' })
    expect(await styleOf(page, 'main')).toMatchObject({ borderTopColor: 'rgb(4, 5, 6)', borderTopWidth: '2px' })
    expect(await page.locator('footer').innerText()).toContain('Fish Market')
    await context.close()
  })

  test('a preview in a frame without an origin looks like the page, and can do nothing', async () => {
    const { body } = await people.issuer.api('POST', '/sign-in-exp/preview?step=sign_in&theme=dark&locale=de', {
      experience: { color: { darkPrimaryColor: '#ff8800' }, branding: { logoUrl: logo }, displayName: 'Noch nicht' },
    })
    const context = await people.browser.newContext()
    const page = await context.newPage()
    const requests: string[] = []
    page.on('request', (request) => requests.push(`${request.method()} ${new URL(request.url()).pathname}`))
    await page.setContent('<iframe sandbox="" width="500" height="700"></iframe>')
    await page.evaluate(`document.querySelector('iframe').srcdoc = ${JSON.stringify(body.html)}`)
    const frame = page.frameLocator('iframe')
    const button = frame.getByRole('button', { name: 'Anmelden' })
    await button.waitFor()
    expect(body.html).toContain('--button:#ff8800')
    expect(await frame.locator('footer').innerText()).toContain('Noch nicht')
    await button.click()
    await frame.getByRole('heading', { name: 'Anmelden' }).waitFor()
    expect(requests.filter((request) => request.startsWith('POST'))).toEqual([])
    await context.close()
  })
})
