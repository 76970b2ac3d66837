import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** What can happen and what did, for whoever writes a receiver. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('the catalogue says who listens and what they get', async () => {
    const hook = { name: 'Directory sync', events: ['User.*'], config: { url: 'https://receiver.example/hook' } }
    expect((await app.home.issuer.api('POST', '/hooks', hook)).body).toMatchObject({ name: 'Directory sync' })
    const visit = await app.signIn('/events', { roles: ['auditor'] })
    const { page } = visit
    await page.getByRole('listitem').filter({ hasText: 'User.Created' }).getByText('1 hook').waitFor()
    await visit.expectUsable()
    await page.getByLabel('Name or what happens').fill('suspended')
    await page.waitForURL(/q=suspended/)
    expect(await page.getByRole('listitem').filter({ hasText: 'User.Created' }).count()).toBe(0)
    await page.getByRole('link', { name: 'User.SuspensionStatus.Updated' }).click()
    await page.getByRole('link', { name: 'Directory sync' }).waitFor()
    expect(await page.getByRole('region', { name: 'example' }).textContent()).toContain('"isSuspended": true')
    await visit.end()
  })

  test('the feed shows the events of one entity, in pages', async () => {
    const { api } = app.home.issuer
    const { body } = await api('POST', '/roles', { name: 'Reader', description: 'Reads' })
    for (let change = 0; change < 25; change++) await api('PATCH', `/roles/${body.id}`, { description: `${change}` })
    const visit = await app.signIn(`/events/feed?entity=role:${body.id}`, { viewport: { width: 320, height: 640 } })
    const { page } = visit
    await page.locator('summary').getByText('Role.Created').click()
    await page.getByRole('region', { name: 'Role.Created' }).waitFor()
    expect(await page.locator('summary').count()).toBe(25)
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Later ones' }).click()
    await page.waitForURL(/after=/)
    await expect.poll(() => page.locator('summary').count()).toBe(1)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })
})
