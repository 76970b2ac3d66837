import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** Who uses the console. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('the only owner stays; another person becomes an auditor and is none any more', async () => {
    const { api } = app.home.issuer
    const colleague = await app.home.flow.createPerson()
    const owner = await app.home.createMember('owner')
    const visit = await app.signIn('/members', { person: owner })
    const { page } = visit
    await page.getByText('There is one owner').waitFor()
    await visit.expectUsable()
    await page.getByRole('button', { name: `Take away the member of Owners ${owner.username}` }).click()
    await page.getByRole('region', { name: 'Owners' }).getByText('console.last_owner').waitFor()

    await page.getByRole('region', { name: 'Auditors' }).getByRole('button', { name: 'Add' }).click()
    await page.getByLabel('Search for a member of Auditors').fill(colleague.username)
    await page.getByLabel(colleague.username).check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('region', { name: 'Auditors' }).getByRole('link', { name: colleague.username }).waitFor()
    await visit.expectUsable()
    expect((await api('GET', `/users/${colleague.id}/roles`)).body).toMatchObject([{ id: 'console-auditor' }])

    await page.getByRole('button', { name: `Take away the member of Auditors ${colleague.username}` }).click()
    await expect.poll(async () => (await api('GET', `/users/${colleague.id}/roles`)).body).toEqual([])
    await page.getByLabel('Role').selectOption('Integrators')
    await page.getByText('surrogate console invite --role integrator').waitFor()
    await visit.end()
  })

  test('an operator sees all of them, and makes no owner', async () => {
    const visit = await app.signIn('/members', { roles: ['operator'], viewport: { width: 320, height: 640 } })
    const { page } = visit
    await page.getByRole('region', { name: 'Owners' }).getByRole('link').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await page.getByRole('region', { name: 'Owners' }).getByRole('button', { name: 'Add' }).click()
    await page.getByRole('dialog').getByRole('checkbox').first().check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await visit.end()
  })
})
