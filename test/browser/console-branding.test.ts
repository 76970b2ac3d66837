import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

const logo = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8" fill="#0a0"/></svg>'

// Functions of the page are its text here, where there is no DOM.
const widthOf = (image: Locator) =>
  image.evaluate((element: unknown) => (element as { naturalWidth: number }).naturalWidth)
const styleOf = (element: Locator, name: string) =>
  element.evaluate(
    (found: unknown, member) =>
      (globalThis as unknown as { getComputedStyle(of: unknown): Record<string, string> }).getComputedStyle(found)[
        member
      ],
    name,
  )

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('the preview follows what is typed, in both themes and other languages; then it is saved', async () => {
    const visit = await app.signIn('/branding')
    const { page } = visit
    const preview = page.frameLocator('iframe[title="Preview"]')
    await preview.getByRole('heading', { name: 'Sign in' }).waitFor()
    const button = preview.getByRole('button', { name: /Sign in|Anmelden/ }).first()
    const colorOf = () => styleOf(button, 'backgroundColor')
    await page.getByLabel('Name on the pages').fill('Acme Bank')
    await page.getByLabel('On light pages', { exact: true }).fill('#0a7d4b')
    await page.getByLabel('Custom CSS').fill('main { border: 3px solid rebeccapurple }')
    await page.getByLabel('Another: Notes on pages').fill('sign_in.note.de: Nur für Kunden')
    await page
      .getByLabel('Upload: Logo', { exact: true })
      .setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(logo) })
    await preview.locator('.brand img').waitFor()
    await expect.poll(() => widthOf(preview.locator('.brand img'))).toBeGreaterThan(0)
    await preview.getByText('Acme Bank').first().waitFor()
    expect(await colorOf()).toBe('rgb(10, 125, 75)')
    expect(await styleOf(preview.locator('main'), 'borderTopWidth')).toBe('3px')
    await page.getByLabel('Language').selectOption('de')
    await preview.getByText('Nur für Kunden').waitFor()
    await page.getByLabel('Theme').selectOption('dark')
    await expect.poll(colorOf).toBe('rgb(149, 163, 255)')
    expect(new URL(page.url()).search).toBe('?locale=de&theme=dark')
    await visit.expectUsable()

    const before = await page.evaluate('history.length')
    await page.getByLabel('Page', { exact: true }).selectOption('consent')
    await preview.getByRole('button', { name: /Zulassen|Erlauben/ }).waitFor()
    expect(await page.evaluate('history.length')).toBe(before)

    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('region', { name: 'Changes that are not saved' }).waitFor({ state: 'detached' })
    const { displayName, color, customCss, customContent, branding } = (
      await app.home.issuer.api('GET', '/sign-in-exp')
    ).body
    expect([displayName, color.primaryColor, customCss, customContent]).toEqual([
      'Acme Bank',
      '#0a7d4b',
      'main { border: 3px solid rebeccapurple }',
      { 'sign_in.note.de': 'Nur für Kunden' },
    ])
    expect(branding.logoUrl).toMatch(/^\/assets\/[\da-f]{64}\.svg$/)
    await visit.end()
  })

  test('a picture that is none is refused; on a telephone everything is there', async () => {
    const visit = await app.signIn('/branding', { viewport: { width: 320, height: 700 } })
    const { page } = visit
    await page
      .getByLabel('Upload: Logo', { exact: true })
      .setInputFiles({ name: 'logo.png', mimeType: 'image/png', buffer: Buffer.from('<script>') })
    await page.getByText('asset.type_not_supported').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })
})
