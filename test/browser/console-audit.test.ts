import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** Who did what: the audit trail as an auditor reads it. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('a row is found by its key, and leads to its call, its entity and the events of that', async () => {
    const { body } = await app.home.issuer.api('POST', '/organizations', { name: 'The Library' })
    const visit = await app.signIn('/audit', { roles: ['auditor'] })
    const { page } = visit
    await page.getByRole('row', { name: /Create organization.*done/ }).waitFor()
    await visit.expectUsable()
    await page.getByLabel('What: its whole key').fill('Management.createOrganization')
    await page.waitForURL(/logKey=Management.createOrganization/)
    await page.getByText('1 row', { exact: true }).waitFor()
    await page.getByLabel('Result').selectOption('Refused')
    await page.getByText('Nothing matches').waitFor()
    await page.getByLabel('Result').selectOption('Done')
    await page.getByRole('link', { name: 'Create organization' }).click()

    await page.getByRole('heading', { name: 'Create organization' }).waitFor()
    expect(await page.getByRole('region', { name: 'request' }).textContent()).toBe('POST /api/organizations')
    await visit.expectUsable()
    expect(await page.getByRole('link', { name: 'organization', exact: true }).getAttribute('href')).toBe(
      `/console/organizations/${body.id}`,
    )
    await page.getByRole('link', { name: 'All of this organization' }).click()
    await page.waitForURL(/\/events\/feed\?entity=organization/)
    await page.locator('summary').getByText('Organization.Created').waitFor()
    await visit.end()
  })

  test('what the server refuses to look for can be put right; 320 px are enough', async () => {
    const visit = await app.signIn('/audit?result=Maybe', { roles: ['auditor'], viewport: { width: 320, height: 640 } })
    await visit.page.getByRole('alert').waitFor()
    await visit.expectUsable()
    await visit.page.getByRole('button', { name: 'Clear' }).click()
    await visit.page.getByRole('row').nth(1).waitFor()
    expect(await visit.page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })
})
