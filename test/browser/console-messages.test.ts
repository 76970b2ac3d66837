import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

const secret = 'the-password-of-the-mail-server'

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('mail is set up, its words are changed, and its password is never shown again', async () => {
    const visit = await app.signIn('/messages')
    const { page } = visit
    await page.getByText('Nobody gets mail').waitFor()
    await visit.expectUsable()
    await page.getByRole('region', { name: 'Mail' }).getByRole('link', { name: 'Set up' }).click()
    await page.getByRole('link', { name: 'Choose SMTP' }).click()
    await page.getByLabel('Host').fill('localhost')
    await page.getByLabel('Port').fill('2525')
    await page.getByLabel('From', { exact: true }).fill('Acme <no-reply@example.com>')
    await page.getByLabel('User (optional)').fill('acme')
    await page.getByLabel('Password (optional)').fill(secret)
    await visit.expectUsable()
    // What is typed survives a new sign-in in this tab, but for what is secret.
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).not.toContain(secret)
    await page.getByRole('button', { name: 'Set up SMTP' }).click()
    await page.getByText('connector.target_not_allowed').waitFor()
    // Nobody connects to it here.
    await page.getByLabel('Host').fill('9.9.9.9')
    await page.getByRole('button', { name: 'Set up SMTP' }).click()
    await page.getByRole('heading', { name: 'SMTP', level: 1, exact: true }).waitFor()
    const [connector] = (await app.home.issuer.api('GET', '/connectors')).body
    expect(connector.config).toMatchObject({ host: '9.9.9.9', port: 2525, auth: { user: 'acme', pass: '********' } })
    expect(await page.content()).not.toContain(secret)

    await page.getByLabel('At most so many messages an hour').fill('500')
    await page.getByRole('button', { name: 'Save' }).click()
    const bar = page.getByRole('region', { name: 'Changes that are not saved' })
    await bar.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Texts' }).click()
    await page.getByLabel('Kind of message').selectOption('SignIn')
    await page.getByLabel('Subject').fill('Your code {{code}}')
    await page.getByLabel('Text (optional)').fill('Type {{code}} to sign in at Acme.')
    await page.getByText('Type 482915 to sign in at Acme.').waitFor()
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Save' }).click()
    await bar.waitFor({ state: 'detached' })
    expect((await app.home.issuer.api('GET', `/connectors/${connector.id}`)).body.config).toEqual({
      ...connector.config,
      maxPerHour: 500,
      templates: [{ usageType: 'SignIn', subject: 'Your code {{code}}', content: 'Type {{code}} to sign in at Acme.' }],
    })
    await visit.end()
  })

  test('a test says what came of it', async () => {
    await app.home.issuer.api('POST', '/connectors', {
      connectorId: 'twilio-short-message-service',
      config: { accountSID: 'AC1', authToken: 'token-of-mine', fromMessagingServiceSID: 'MG1' },
    })
    const visit = await app.signIn('/messages', { viewport: { width: 320, height: 700 } })
    const { page } = visit
    await page.getByRole('link', { name: 'Twilio' }).click()
    await page.getByLabel('To this telephone number').fill('+491701234567')
    await page.getByRole('button', { name: 'Send' }).click()
    // No relay runs here, and the console says so.
    await page.getByText(/hook\.relay_unavailable|connector\.send_failed/).waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    expect(await page.content()).not.toContain('token-of-mine')
    await page.context().close()
  })
})
