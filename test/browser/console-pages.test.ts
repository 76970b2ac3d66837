import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** Users, roles, resources, hooks and the first page, as people use them. */

describe.skipIf(!chromium)('pages of the console, in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const api = async (method: string, path: string, body?: unknown) =>
    (await app.home.issuer.api(method, path, body)).body

  test('the first page says what comes next, and that nothing needs anybody', async () => {
    const visit = await app.signIn('/')
    await visit.page.getByText('Nothing needs you.').waitFor()
    await visit.page.getByRole('link', { name: 'Register your API' }).waitFor()
    await visit.expectUsable()
    await visit.page.getByRole('link', { name: 'Register your API' }).click()
    await visit.page.getByRole('heading', { name: 'New resource' }).waitFor()
    await visit.end()
  })

  test('whoever is signed in has a menu, by the keyboard too', async () => {
    const visit = await app.signIn('/')
    const { page } = visit
    const button = page.getByRole('button', { name: /owner/ })
    await button.focus()
    await page.keyboard.press('Enter')
    const menu = page.getByRole('menu', { name: 'You and this console' })
    await menu.waitFor()
    await visit.expectUsable()
    await page.keyboard.press('Escape')
    await menu.waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.ariaHasPopup')).toBe('menu')
    await button.click()
    await page.getByRole('menuitemradio', { name: 'Dark' }).click()
    await expect.poll(() => page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    await menu.waitFor({ state: 'detached' })
    await button.click()
    await page.getByRole('menuitem', { name: 'Keys of the keyboard' }).click()
    await page.getByRole('dialog', { name: 'Keys of the keyboard' }).waitFor()
    await page.keyboard.press('Escape')
    await visit.expectUsable()
    await button.click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByText('You are signed out').waitFor()
    await visit.context.close()
  })

  test('the palette says that nothing was found only when it has looked', async () => {
    const visit = await app.signIn('/')
    const { page } = visit
    let answer = () => {}
    const held = new Promise<void>((resolve) => {
      answer = resolve
    })
    await page.route('**/console/api/search?*', (route) => held.then(() => route.continue()))
    // Keys are heard when there is a page.
    await page.getByText('Nothing needs you.').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Search everything' }).waitFor()
    await page.evaluate(
      `said = []; new MutationObserver(() => said.push(document.querySelector('[role=dialog]')?.textContent))
         .observe(document, { subtree: true, childList: true, characterData: true })`,
    )
    await Promise.all([page.waitForRequest(/console\/api\/search/), page.keyboard.type('zzqq')])
    expect(await page.evaluate<string[]>('said')).toContainEqual(expect.stringContaining('Looking…'))
    expect(await page.evaluate<string[]>('said')).not.toContainEqual(expect.stringContaining('Nothing has that name'))
    answer()
    await page.getByText('Nothing has that name or id.').waitFor()
    await visit.end()
  })

  test('an API gets permissions, and becomes the default of tokens', async () => {
    const visit = await app.signIn('/resources/new')
    const { page } = visit
    await page.getByLabel('Name').fill('Orders')
    await page.getByLabel('Indicator').fill('https://orders.example.test')
    await page.getByRole('button', { name: 'Create resource' }).click()
    await page.getByText('No permissions yet').waitFor()
    await visit.expectUsable()
    await page.getByRole('button', { name: 'New permission' }).click()
    const dialog = page.getByRole('dialog', { name: 'New permission' })
    await dialog.getByLabel('Name').fill('read:orders')
    await visit.expectUsable()
    await dialog.getByRole('button', { name: 'Define it' }).click()
    await page.getByRole('rowheader', { name: 'read:orders' }).waitFor()
    await page.getByRole('link', { name: 'Settings', exact: true }).click()
    await page.getByRole('button', { name: 'Make it the default' }).click()
    await page.getByRole('button', { name: 'No longer the default' }).waitFor()
    const [made] = (await api('GET', '/resources')).filter(({ name }: { name: string }) => name === 'Orders')
    expect(made).toMatchObject({ isDefault: true })
    await visit.end()
  })

  test('a role gets a permission, and a user the role', async () => {
    const resource = await api('POST', '/resources', { name: 'Stock', indicator: 'https://stock.example.test' })
    await api('POST', `/resources/${resource.id}/scopes`, { name: 'read:stock' })
    const user = await api('POST', '/users', { username: 'grace', name: 'Grace Hopper' })
    const visit = await app.signIn('/roles/new')
    const { page } = visit
    await page.getByLabel('Name').fill('Stock reader')
    await page.getByLabel('Description').fill('Reads stock')
    await page.getByRole('button', { name: 'Create role' }).click()
    await page.getByText('It carries no permission yet.').waitFor()
    await page.getByLabel('To add from').selectOption({ label: 'Stock' })
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('checkbox', { name: /read:stock/ }).check()
    await visit.expectUsable()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('button', { name: 'Take away the permission read:stock' }).waitFor()

    await visit.goTo(`/users/${user.id}/roles`)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('checkbox', { name: /Stock reader/ }).check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('link', { name: 'Stock reader' }).waitFor()
    const roles = await api('GET', `/users/${user.id}/roles`)
    expect(roles.map(({ name }: { name: string }) => name)).toEqual(['Stock reader'])
    await visit.end()
  })

  test('somebody is suspended; their sessions, factors, organizations and history can be read', async () => {
    const person = await app.home.createMember('auditor')
    const other = await app.signIn('/', { person })
    const visit = await app.signIn(`/users/${person.id}/sessions`)
    const { page } = visit
    await page.getByRole('button', { name: 'End', exact: true }).waitFor()
    await visit.expectUsable()
    for (const tab of ['Factors', 'Organizations', 'History', 'Profile']) {
      await page.getByRole('link', { name: tab, exact: true }).last().click()
      await visit.expectUsable()
    }
    await page.getByRole('button', { name: 'Suspend…' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Suspend' }).click()
    await page.getByText('suspended', { exact: true }).waitFor()
    expect(await api('GET', `/users/${person.id}`)).toMatchObject({ isSuspended: true })
    await other.context.close()
    await visit.end()
  })

  test('a hook is made and set, and says how it does', async () => {
    const visit = await app.signIn('/hooks')
    const { page } = visit
    await page.getByText('No hooks yet').waitFor()
    await visit.expectUsable()
    await page.getByRole('link', { name: 'New hook' }).first().click()
    await page.getByLabel('Name').fill('CRM')
    await page.getByRole('textbox', { name: 'URL' }).fill('https://crm.example.test/webhooks')
    await page.getByLabel('Another: Events').fill('User.Created')
    await page.getByRole('button', { name: 'Create hook' }).click()
    await page.getByRole('heading', { name: 'CRM' }).waitFor()
    await page.getByRole('switch', { name: 'Deliver' }).uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(async () => (await api('GET', '/hooks'))[0].enabled).toBe(false)
    await visit.expectUsable()
    await page.getByRole('link', { name: 'Deliveries' }).click()
    await page.getByText('It is switched off; its events wait.').waitFor()
    await visit.end()
  })

  test('two administrators change the same thing: nothing is lost, and the second sees what the first did', async () => {
    const { id } = await api('POST', '/roles', { name: 'Shared', description: 'At first' })
    const visit = await app.signIn(`/roles/${id}/settings`)
    const { page } = visit
    await page.getByLabel('Name').fill('Mine')
    await api('PATCH', `/roles/${id}`, { description: 'Of the other' })
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Somebody changed this in the meantime.').waitFor()
    await page.getByText('Description is now: Of the other').waitFor()
    await visit.expectUsable()
    expect(await api('GET', `/roles/${id}`)).toMatchObject({ name: 'Shared', description: 'Of the other' })
    await page.getByRole('button', { name: 'Save over it' }).click()
    await expect.poll(() => api('GET', `/roles/${id}`)).toMatchObject({ name: 'Mine', description: 'Of the other' })
    await visit.end()
  })

  test('what does lasting harm asks for a fresh sign-in, and goes on where it was', async () => {
    const person = await app.home.createMember('owner')
    const resource = await api('POST', '/resources', { name: 'Doomed', indicator: 'https://doomed.example.test' })
    await api('POST', `/resources/${resource.id}/scopes`, { name: 'read:doomed' })
    const visit = await app.signIn(`/resources/${resource.id}`, { person })
    const { page } = visit
    const anHourAgo = `authenticated_at = authenticated_at - interval '1 hour'`
    await app.home.issuer.sql(`UPDATE authorizations SET ${anHourAgo} WHERE user_id = $1`, [person.id])
    await app.home.issuer.sql(`UPDATE sessions SET ${anHourAgo} WHERE user_id = $1`, [person.id])
    await app.home.issuer.sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [person.id])
    await page.locator('header').getByRole('button', { name: 'Delete…' }).first().click()
    const dialog = page.getByRole('alertdialog', { name: 'Delete this resource?' })
    await dialog.getByText('permissions: 1').waitFor()
    await dialog.getByLabel('Type Doomed to confirm').fill('Doomed')
    await dialog.getByRole('button', { name: 'Delete the resource' }).click()
    await page.waitForURL(/\/sign-in\//)
    expect((await app.home.issuer.api('GET', `/resources/${resource.id}`)).status).toBe(200)
    await signInOn(page, person)
    // The dialog is open as it was left.
    await dialog.getByLabel('Type Doomed to confirm').fill('Doomed')
    await dialog.getByRole('button', { name: 'Delete the resource' }).click()
    await page.waitForURL(/\/console\/resources$/)
    expect((await app.home.issuer.api('GET', `/resources/${resource.id}`)).status).toBe(404)
    await visit.end()
  })
})
