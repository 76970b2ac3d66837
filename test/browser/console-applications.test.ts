import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { clipboardOf } from '../support/clipboard.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** The page that all others are made like: lists, forms, what one may not do, what others did meanwhile. */

describe.skipIf(!chromium)('applications in the console, in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const create = async (name: string, more: object = {}) =>
    (await app.home.issuer.api('POST', '/applications', { name, type: 'Traditional', ...more })).body
  const read = async (id: string) => (await app.home.issuer.api('GET', `/applications/${id}`)).body

  test('journey 6: an integrator makes a backend, sees its secret once, runs what the guide says, reads the token', async () => {
    const { api } = app.home.issuer
    const indicator = 'https://orders.example.test'
    const resource = await api('POST', '/resources', { name: 'Orders', indicator })
    await api('PATCH', `/resources/${resource.body.id}/is-default`, { isDefault: true })
    const visit = await app.signIn('/applications/new', { roles: ['integrator'] })
    const { page } = visit
    await page.getByLabel('Name').fill('Nightly export')
    await page.getByLabel('Kind').selectOption({ label: 'Machine to machine' })
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Create application' }).click()
    await page.getByRole('heading', { name: 'Nightly export is ready' }).waitFor()
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Copy client secret' }).click()
    const secret = await clipboardOf(page)
    expect(secret).toMatch(/^\w{43}$/)
    await page.getByRole('link', { name: 'To the guide' }).click()
    await page.getByRole('heading', { name: 'In your code' }).waitFor()
    await visit.expectUsable()
    expect(await page.content()).not.toContain(secret)
    await page.getByRole('button', { name: 'Copy curl' }).click()
    const command = await clipboardOf(page)
    // As it was copied, by a shell.
    const run = promisify(execFile)('sh', ['-c', command], { env: { ...process.env, CLIENT_SECRET: secret } })
    const { stdout } = await run
    expect(JSON.parse(stdout)).toMatchObject({ token_type: 'Bearer' })

    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Search everything' }).waitFor()
    await page.keyboard.type('Developer')
    await page.locator('[role=menuitem][data-focused]').filter({ hasText: 'Developer' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Tokens' }).click()
    await page.getByLabel('Token, or any text with tokens in it').fill(stdout)
    const token = page.getByRole('region', { name: 'Access token' })
    await token.getByText('signed by this issuer').waitFor()
    expect(await token.textContent()).toContain(`Audience${indicator}`)
    await visit.end()
  })

  test('a list is paged and searched by the server, and its address says how', async () => {
    for (let count = 0; count < 25; count++) await create(`Listed ${count}`)
    const visit = await app.signIn('/applications?search=Listed')
    const { page } = visit
    const rows = page.locator('tbody tr')
    await page.getByText('25 rows').waitFor()
    expect(await rows.count()).toBe(20)
    await page.keyboard.press('n')
    await page.getByText('Page 2 of 2').waitFor()
    await expect.poll(() => rows.count()).toBe(5)
    expect(page.url()).toMatch(/search=Listed&page=2$/)
    await page.goBack()
    await expect.poll(() => rows.count()).toBe(20)
    await page.keyboard.press('/')
    await page.keyboard.type('Listed 24')
    await expect.poll(() => rows.count()).toBe(1)
    expect(page.url()).toMatch(/search=Listed\+24$/)
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await visit.expectUsable()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Listed 24' }).waitFor()
    await visit.end()
  })

  test('changes are shown before they are saved; leaving asks; what the server refuses stands at its field', async () => {
    const { id } = await create('Shop')
    const visit = await app.signIn(`/applications/${id}/settings`)
    const { page } = visit
    const bar = page.getByRole('region', { name: 'Changes that are not saved' })
    await page.getByLabel('Name', { exact: true }).fill('Store')
    await page.getByLabel('Another: Redirect URIs').fill('http://not-here.example/')
    expect(await bar.textContent()).toMatch(/NameShop → Store.*Redirect URIsnothing → http:\/\/not-here/)
    await visit.expectUsable()

    await page.getByRole('link', { name: 'Guide' }).click()
    const asked = page.getByRole('alertdialog', { name: 'Leave without saving?' })
    await asked.waitFor()
    await visit.expectUsable()
    await asked.getByRole('button', { name: 'Stay' }).click()
    expect(page.url()).toMatch(/settings$/)

    await bar.getByRole('button', { name: 'Save' }).click()
    await page.getByText('must be https').waitFor()
    expect(await page.locator('[aria-invalid=true]').first().getAttribute('name')).toBe(
      'oidcClientMetadata.redirectUris',
    )
    await page.getByLabel('Redirect URIs 1').fill('https://here.example/callback')
    await page.keyboard.press('Control+s')
    await bar.waitFor({ state: 'detached' })
    expect(await read(id)).toMatchObject({
      name: 'Store',
      oidcClientMetadata: { redirectUris: ['https://here.example/callback'] },
    })
    await visit.end()
  })

  test('nothing typed is lost when the session ends in the middle', async () => {
    const { id } = await create('Shop')
    const person = await app.home.createMember('owner')
    const visit = await app.signIn(`/applications/${id}/settings`, { person })
    const { page } = visit
    await page.getByLabel('Description').fill('Typed for an hour')
    await app.home.issuer.sql('DELETE FROM console_sessions WHERE user_id = $1', [person.id])
    await page.getByRole('button', { name: 'Save' }).click()
    const out = page.getByRole('alertdialog', { name: 'Your session has ended' })
    await out.waitFor()
    await visit.expectUsable()
    await out.getByRole('button', { name: 'Sign in again' }).click()
    // The browser is still signed in to the issuer, or signs in there.
    await page.waitForURL(/\/(console\/applications|sign-in)/)
    if (page.url().includes('/sign-in/')) await signInOn(page, person)
    await page.getByText('You typed this before').waitFor()
    expect(await page.getByLabel('Description').inputValue()).toBe('Typed for an hour')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(async () => (await read(id)).description).toBe('Typed for an hour')
    await visit.end()
  })

  test('an auditor reads, and is told why the rest is not for them', async () => {
    const { id } = await create('Shop')
    const visit = await app.signIn(`/applications/${id}/settings`, { roles: ['auditor'] })
    const { page } = visit
    await page.getByText('This needs the permission applications or all. You are auditor.').waitFor()
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('readonly')).not.toBeNull()
    const remove = page.getByRole('button', { name: 'Delete…' })
    expect(await remove.getAttribute('aria-disabled')).toBe('true')
    await remove.focus()
    await page.getByRole('tooltip', { name: /This needs the permission/ }).waitFor()
    await page.keyboard.press('Enter')
    expect(await page.getByRole('alertdialog').count()).toBe(0)
    await page.getByRole('link', { name: 'Secrets' }).click()
    await page.getByText('This needs the permission applications or all. You are auditor.').waitFor()
    await visit.end()
  })

  test('the palette finds pages, names and ids by the keyboard alone', async () => {
    const { id } = await create('Found by its name')
    const visit = await app.signIn('/')
    const { page } = visit
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    const found = page.getByRole('menuitem', { name: /Found by its name/ })
    await page.getByRole('dialog', { name: 'Search everything' }).waitFor()
    await page.keyboard.type('by its name')
    await found.waitFor()
    await visit.expectUsable()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Found by its name' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await page.getByRole('heading', { name: 'Applications', level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type(id)
    await found.waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys of the keyboard' }).waitFor()
    await visit.end()
  })

  test('something is deleted by whoever types its name', async () => {
    const { id } = await create('Doomed')
    const visit = await app.signIn(`/applications/${id}`)
    const { page } = visit
    await page.getByRole('button', { name: 'Delete…' }).click()
    const dialog = page.getByRole('alertdialog', { name: 'Delete this application?' })
    const confirm = dialog.getByRole('button', { name: 'Delete the application' })
    expect(await confirm.isDisabled()).toBe(true)
    await visit.expectUsable()
    await page.keyboard.type('Doomed')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/console\/applications$/)
    expect((await app.home.issuer.api('GET', `/applications/${id}`)).status).toBe(404)
    await visit.end()
  })

  test('at 320 px nothing is cut off', async () => {
    const { id } = await create('Donaudampfschifffahrtsgesellschaftskapitaensmuetze')
    const visit = await app.signIn('/applications', { viewport: { width: 320, height: 640 } })
    for (const path of ['/applications', '/applications/new', `/applications/${id}`, `/applications/${id}/settings`]) {
      await visit.goTo(path)
      await visit.expectUsable()
      expect([path, await visit.page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320])
    }
    await visit.end()
  })
})
