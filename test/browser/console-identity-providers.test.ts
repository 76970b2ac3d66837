import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())
  const list = async (path: string) => (await app.home.issuer.api('GET', path)).body

  test('a provider for everybody is made from its kind, and changed without its secret', async () => {
    const visit = await app.signIn('/identity-providers')
    const { page } = visit
    await page.getByText('There is none: people sign in with what they have here.').waitFor()
    await visit.expectUsable()
    await page.getByRole('link', { name: 'Add a provider' }).click()
    await page.getByRole('link', { name: 'Choose GitHub' }).click()
    await page.getByLabel('Client id').fill('github-client')
    await page.getByLabel('Client secret').fill('github-secret')
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Set up GitHub' }).click()
    await page.getByRole('heading', { name: 'GitHub', level: 1, exact: true }).waitFor()
    const [connector] = await list('/connectors')
    await page.getByText(`${app.home.issuer.baseUrl}/callback/${connector.id}`).waitFor()
    await page.getByLabel('Name on the button').fill('Work account')
    await page.getByLabel('Scopes').fill('read:user')
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('region', { name: 'Changes that are not saved' }).waitFor({ state: 'detached' })
    expect((await list('/connectors'))[0]).toMatchObject({
      config: { clientId: 'github-client', clientSecret: '********', scope: 'read:user' },
      metadata: { name: 'Work account' },
    })
    expect(await page.content()).not.toContain('github-secret')
    await page.getByRole('link', { name: 'Identity providers' }).first().click()
    await page.getByRole('link', { name: 'Not offered yet' }).waitFor()
    await visit.end()
  })

  test('a company gets its domains; what the server refuses is said', async () => {
    const visit = await app.signIn('/identity-providers/new/company', { viewport: { width: 320, height: 700 } })
    const { page } = visit
    await page.getByRole('link', { name: 'Choose Google Workspace' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Acme')
    await page.getByLabel('Another: Domains').fill('gmail.com')
    await page.getByLabel('Client id').fill('acme-client')
    await page.getByLabel('Client secret').fill('acme-secret')
    await page.getByRole('button', { name: 'Add the company' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Domains 1').fill('acme.example')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await page.getByRole('button', { name: 'Add the company' }).click()
    await page.getByRole('heading', { name: 'Acme', level: 1 }).waitFor()
    expect(await list('/sso-connectors')).toMatchObject([
      { providerName: 'GoogleWorkspace', connectorName: 'Acme', domains: ['acme.example'] },
    ])
    await visit.end()
  })
})
