import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askingPolicies } from '../support/asked-first.ts'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'
import type { TestApplication } from '../support/issuer-data.ts'

/** Acting for users, as support and auditors see it; with gateways: `console-flight-recorder.test.ts`. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  let policies: Awaited<ReturnType<typeof askingPolicies>>
  let desk: TestApplication
  let orders: string
  beforeAll(async () => {
    policies = await askingPolicies()
    app = await startConsoleInChromium({ policies: { current: () => policies.set } })
    const { issuer } = app.home
    orders = await issuer.createResource({ scopes: ['read:orders'] })
    desk = await issuer.createApplication({ name: 'Support desk' })
  })
  afterAll(async () => {
    await app?.close()
    await policies?.remove()
  })

  const customer = async (name: string, customData: object = {}) => {
    const { issuer } = app.home
    const { id } = (await issuer.api('POST', '/users', { name, customData })).body
    await issuer.grantUser(id, orders, ['read:orders'])
    return id as string
  }
  const exchange = async (subjectToken: string): Promise<string> => {
    const answer = await app.home.issuer.exchange(desk, subjectToken, { resource: orders, scope: 'read:orders' })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return String(decodeJwt(answer.body.access_token)['sid'])
  }

  test('support asks with reason and ticket, gives the token away once, and finds the session', async () => {
    const userId = await customer('Ada')
    const visit = await app.signIn(`/users/${userId}`, { roles: ['support'] })
    const { page } = visit
    await page.getByRole('link', { name: 'Act for them' }).click()
    await page.getByLabel('Reason').fill('The invoice is wrong')
    await page.getByLabel('Ticket').fill('T-7')
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Make a subject token' }).click()
    const token = await page.getByRole('region', { name: 'subject token', exact: true }).textContent()
    expect(token).toMatch(/^sub_/)
    await visit.expectUsable()
    const sid = await exchange(token!)

    await page.getByRole('link', { name: 'Impersonation', exact: true }).first().click()
    await page.getByLabel('Ticket').fill('T-7')
    await page.getByText('1 row', { exact: true }).waitFor()
    await visit.expectUsable()
    await page.getByRole('link', { name: 'The invoice is wrong' }).click()
    await page.waitForURL(`**/console/impersonations/${sid}`)
    await page.getByRole('heading', { name: 'Support desk as Ada' }).waitFor()
    expect(await page.getByRole('timer').textContent()).toMatch(/^\d+:\d\d left$/)
    const line = page.getByRole('list', { name: 'Time line' })
    await line.getByText('asked for a subject token in the console').waitFor()
    expect(await line.innerText()).toMatch(/Allowed by surrogate\/impersonation\/decision.*no rule objected/)
    await page.getByRole('button', { name: 'End now' }).click()
    await line.getByText(/^Ended by/).waitFor()
    await page.getByText('The console asks no gateways').waitFor()
    await visit.end()
  })

  test('a customer who is asked first: the number, the answer as it comes, then the token', async () => {
    const userId = await customer('Petra', { askFirst: true })
    const visit = await app.signIn(`/impersonations/new?user=${userId}`, { roles: ['support'] })
    const { page } = visit
    await page.getByLabel('Reason').fill('Petra called')
    await page.getByRole('button', { name: 'Make a subject token' }).click()
    await page.waitForURL(/\/impersonations\/requests\/\w+$/)
    const id = page.url().split('/').at(-1)!
    const { number } = (await app.home.issuer.api('GET', `/impersonation-requests/${id}`)).body
    await page.getByText(`Tell the customer the number ${number}`).waitFor()
    const make = page.getByRole('button', { name: 'Make the subject token' })
    expect(await make.getAttribute('aria-disabled')).toBe('true')
    await visit.expectUsable()

    const auditor = await app.signIn('/impersonations', { roles: ['auditor'], viewport: { width: 320, height: 640 } })
    await auditor.page.getByRole('link', { name: "One request waits for the customer's answer." }).click()
    await auditor.page.getByRole('link', { name: 'Petra called' }).waitFor()
    expect(await auditor.page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await auditor.end()

    await app.home.issuer.sql(
      `UPDATE impersonation_requests SET decision = 'approved', decided_at = now() WHERE id = $1`,
      [id],
    )
    await page.getByText('approved', { exact: true }).waitFor()
    await make.click()
    const token = await page.getByRole('region', { name: 'subject token', exact: true }).textContent()
    const sid = await exchange(token!)
    await visit.goTo(`/impersonations/${sid}`)
    const line = page.getByRole('list', { name: 'Time line' })
    await line.getByText('The customer agreed').waitFor()
    expect(await line.innerText()).toContain('because of approved_by_customer (the customer had to agree)')
    await visit.end()
  })

  test('an auditor reads it all and ends nothing; the reason why not is told; 320 px are enough', async () => {
    const { issuer } = app.home
    const sid = await exchange(await issuer.subjectToken(await customer('Grace'), { reason: 'To be read' }))
    const visit = await app.signIn(`/impersonations/${sid}`, {
      roles: ['auditor'],
      viewport: { width: 320, height: 640 },
    })
    const { page } = visit
    const end = page.getByRole('button', { name: 'End now' })
    await end.waitFor()
    expect(await end.getAttribute('aria-disabled')).toBe('true')
    await end.focus()
    await page.getByRole('tooltip').getByText('This needs the permission impersonation or all.').waitFor()
    await end.press('Enter')
    await page.getByRole('list', { name: 'Time line' }).getByText('exchanged it').waitFor()
    expect((await issuer.api('GET', `/impersonations/${sid}`)).body.endedAt).toBeNull()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })

  test('lists and the first page name people, with the longest session and what waits for customers', async () => {
    const { issuer } = app.home
    await issuer.sql('UPDATE impersonation_sessions SET ended_at = now() WHERE ended_at IS NULL')
    await issuer.sql(`UPDATE impersonation_requests SET expires_at = now() WHERE used_at IS NULL`)
    const [ada, ben] = [await customer('Ada King'), await customer('Ben Wells')]
    const first = await exchange(await issuer.subjectToken(ada, { reason: 'Begun first' }))
    const visit = await app.signIn('/', { roles: ['auditor'] })
    const { page } = visit
    await page.getByRole('link', { name: 'One session goes on' }).waitFor()
    await page.getByRole('link', { name: 'Support desk as Ada King' }).waitFor()
    const second = await exchange(await issuer.subjectToken(ben, { reason: 'Begun second' }))
    await issuer.sql(`UPDATE impersonation_sessions SET started_at = now() - interval '9 minutes' WHERE id = $1`, [
      first,
    ])
    await issuer.api('POST', '/subject-tokens', { userId: await customer('Cleo', { askFirst: true }), reason: 'Why' })
    await visit.goTo('/')
    await page.getByRole('link', { name: '2 sessions go on' }).waitFor()
    await page.getByText('9 minutes ago').waitFor()
    await page.getByRole('link', { name: "One request waits for the customer's answer." }).waitFor()
    await visit.expectUsable()
    await page.getByRole('link', { name: 'Support desk as Ada King' }).click()
    await page.waitForURL(`**/console/impersonations/${first}`)

    await visit.goTo('/impersonations?active=true')
    const row = (reason: string) => page.getByRole('row').filter({ hasText: reason })
    expect(await row('Begun first').innerText()).toMatch(new RegExp(`Support desk\\s+${desk.id}[^]*Ada King\\s+${ada}`))
    expect(await row('Begun second').innerText()).toContain('Ben Wells')
    await visit.expectUsable()
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.goTo('/impersonations/requests?status=pending')
    await page.getByText('Cleo').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
    for (const id of [first, second]) await issuer.api('POST', `/impersonations/${id}/end`)
  })

  test('an integrator sees why there is nothing to see', async () => {
    const visit = await app.signIn('/impersonations', { roles: ['integrator'] })
    await visit.page.getByText('This needs the permission').first().waitFor()
    await visit.end()
  })
})
