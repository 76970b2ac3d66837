import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** Organizations and what they have in common, by the hands of people. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('an operator makes an organization with a role, a permission, a member and a domain', async () => {
    const { api } = app.home.issuer
    const ada = await app.home.flow.createPerson()
    await api('PATCH', `/users/${ada.id}`, { name: 'Ada Lovelace' })
    const visit = await app.signIn('/organizations', { roles: ['operator'] })
    const { page } = visit
    await page.getByRole('heading', { name: 'No organizations yet' }).waitFor()
    await visit.expectUsable()

    await page.getByRole('link', { name: 'Roles and permissions' }).click()
    await page.getByRole('button', { name: 'New role' }).click()
    await page.getByLabel('Name').fill('Librarian')
    await page.getByRole('button', { name: 'Create role' }).click()
    await page.getByLabel('Parts').getByRole('link', { name: 'Permissions' }).click()
    await page.getByRole('button', { name: 'New permission' }).click()
    await page.getByLabel('Name').fill('lend:books')
    await page.getByRole('button', { name: 'Create permission' }).click()
    await page.getByRole('table').getByText('lend:books').waitFor()
    await page.getByLabel('Parts').getByRole('link', { name: 'Roles' }).click()
    await page.getByRole('link', { name: 'Librarian' }).click()
    await page
      .getByRole('region', { name: 'Permissions in the organization' })
      .getByRole('button', { name: 'Add' })
      .click()
    await page.getByLabel('lend:books').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Take away the permission lend:books' }).waitFor()
    await visit.expectUsable()

    await visit.goTo('/organizations/new')
    await page.getByLabel('Name').fill('The Library')
    await page.getByRole('button', { name: 'Create organization' }).click()
    await page.getByRole('heading', { name: 'The Library' }).waitFor()
    const id = page.url().split('/').at(-1)!
    await page.getByRole('button', { name: 'Add' }).click()
    await page.getByLabel('Search for a member').fill('Lovelace')
    await page.getByLabel('Ada Lovelace').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Roles of Ada Lovelace' }).click()
    await page.getByLabel('Librarian').check()
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('row', { name: /Ada Lovelace.*Librarian/ }).waitFor()
    await visit.expectUsable()
    expect((await api('GET', `/organizations/${id}/users/${ada.id}/scopes`)).body).toMatchObject([
      { name: 'lend:books' },
    ])

    await page.getByRole('link', { name: 'Joining' }).click()
    await page.getByRole('region', { name: 'Address domains' }).getByRole('button', { name: 'Add' }).click()
    await page.getByLabel('Domain', { exact: true }).fill('library.example')
    await page.getByRole('button', { name: 'Add domain' }).click()
    await page.getByRole('button', { name: 'Take out library.example' }).waitFor()
    await visit.expectUsable()

    await page.getByLabel('Parts').getByRole('link', { name: 'Members' }).click()
    await page.getByRole('button', { name: 'Take out Ada Lovelace' }).click()
    await page.getByText('Nobody belongs to it yet').waitFor()
    expect((await api('GET', `/organizations/${id}/users`)).body).toEqual([])
    await visit.end()
  })

  test('settings are saved with a diff, and an auditor sees why they cannot', async () => {
    const { api } = app.home.issuer
    const { body } = await api('POST', '/organizations', { name: 'Kept as it is' })
    const visit = await app.signIn(`/organizations/${body.id}/settings`)
    await visit.page.getByLabel('Members need a second factor').check()
    await visit.page.getByRole('button', { name: 'Save' }).click()
    await visit.page.getByText('second factor required').waitFor()
    expect((await api('GET', `/organizations/${body.id}`)).body.isMfaRequired).toBe(true)
    await visit.end()

    const auditor = await app.signIn(`/organizations/${body.id}/settings`, {
      roles: ['auditor'],
      viewport: { width: 320, height: 640 },
    })
    await auditor.page.getByText('This needs the permission organizations or all').waitFor()
    await auditor.expectUsable()
    await auditor.page.getByRole('link', { name: 'Hooks', exact: true }).click()
    await auditor.page.getByRole('region', { name: 'Hooks' }).waitFor()
    expect(await auditor.page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await auditor.end()
  })
})
