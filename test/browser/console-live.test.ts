import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type GatewaysInChromium, secretClaim, startGatewaysInChromium } from '../support/gateways-in-chromium.ts'

/** What gateways decide, as it happens. */

describe.skipIf(!chromium)('in Chromium', () => {
  let world: GatewaysInChromium
  beforeAll(async () => {
    world = await startGatewaysInChromium('edge-1', 'edge-2')
  })
  afterAll(() => world?.close())

  const gateway = (name: 'edge-1' | 'edge-2') => world.gateways[name]!

  test('requests of all gateways come as they are decided, and a denied one leads to why, by the keyboard', async () => {
    const before = await gateway('edge-1').ask('/orders/before')
    const visit = await world.app.signIn('/live', { roles: ['auditor'] })
    const { page } = visit
    const rows = page.getByRole('list', { name: 'Requests' }).getByRole('listitem')
    await rows.filter({ hasText: '/orders/before' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    const denied = await gateway('edge-2').ask('/orders/7/refund?card=4711', { method: 'POST', claims: { sub: 'eve' } })
    await rows.filter({ hasText: 'POST /orders/7/refund' }).filter({ hasText: 'not_the_boss' }).waitFor()
    expect(await rows.first().textContent()).toMatch(/403.*eve.*edge-2/)
    await visit.expectUsable()

    await page.getByLabel('Verdict').selectOption('denied')
    await page.waitForURL(/verdict=denied/)
    await expect.poll(() => rows.count()).toBe(1)
    await gateway('edge-1').ask('/orders/allowed')
    await gateway('edge-1').ask('/orders/8/refund', { method: 'POST', claims: { sub: 'eve' } })
    await rows.filter({ hasText: '/orders/8/refund' }).waitFor()
    expect(await rows.count()).toBe(2)

    // Two lines down, and what comes meanwhile moves nothing.
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await gateway('edge-1').ask('/orders/9/refund', { method: 'POST', claims: { sub: 'eve' } })
    await page.getByText('1 new, shown when you leave the list').waitFor()
    expect(await rows.count()).toBe(2)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/console/why/${denied}`)
    await page.getByRole('heading', { name: 'POST /orders/7/refund' }).waitFor()
    expect(before).not.toBe(denied)
    await visit.end()
  })

  test('a pause holds the list, and going on shows what came', async () => {
    const visit = await world.app.signIn('/live?route=public', { roles: ['auditor'] })
    const { page } = visit
    await page.getByText('No such request lately').waitFor()
    await gateway('edge-1').ask('/public/1')
    const rows = page.getByRole('list', { name: 'Requests' }).getByRole('listitem')
    await rows.filter({ hasText: '/public/1' }).waitFor()
    await page.keyboard.press('p')
    await page.getByText('paused', { exact: true }).waitFor()
    await gateway('edge-2').ask('/public/2')
    await page.getByText('1 new, shown when it goes on').waitFor()
    await page.getByRole('button', { name: 'Go on' }).click()
    await rows.filter({ hasText: '/public/2' }).waitFor()
    await visit.end()
  })

  test('a gateway that goes away is named, and what it decided meanwhile is there when it is back', async () => {
    const visit = await world.app.signIn('/live?route=read', {
      roles: ['auditor'],
      viewport: { width: 320, height: 640 },
    })
    const { page } = visit
    const rows = page.getByRole('list', { name: 'Requests' }).getByRole('listitem')
    await gateway('edge-1').ask('/orders/one')
    await rows.filter({ hasText: '/orders/one' }).waitFor()
    const { line } = gateway('edge-1')
    line.cut(true)
    await page.getByText('edge-1 is away').waitFor()
    const missed = Array.from({ length: 5 }, (_, number) => `/orders/missed-${number}`)
    for (const path of missed) await gateway('edge-1').ask(path)
    await gateway('edge-2').ask('/orders/other')
    await rows.filter({ hasText: '/orders/other' }).waitFor()
    await visit.expectUsable()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    line.cut(false)
    for (const path of missed) await rows.filter({ hasText: path }).waitFor()
    await expect.poll(() => page.getByText('edge-1 is away').count()).toBe(0)
    for (const path of missed) expect(await rows.filter({ hasText: path }).count()).toBe(1)
    await visit.end()
  })

  test("the page's own connection breaks, and nothing is missing or there twice", async () => {
    const visit = await world.app.signIn('/live?route=write', { roles: ['auditor'] })
    const { page } = visit
    const rows = page.getByRole('list', { name: 'Requests' }).getByRole('listitem')
    await page.getByText('live', { exact: true }).waitFor()
    const post = (name: string) =>
      gateway('edge-1').ask(`/orders/${name}`, { method: 'POST', claims: { scope: 'write:orders' } })
    await post('first')
    await rows.filter({ hasText: '/orders/first' }).waitFor()
    // As when a laptop changes its network.
    world.line.cut(true)
    await page.getByText('broken off, trying again').waitFor()
    for (const name of ['second', 'third']) await post(name)
    world.line.cut(false)
    await rows.filter({ hasText: '/orders/third' }).waitFor()
    await post('fourth')
    await rows.filter({ hasText: '/orders/fourth' }).waitFor()
    expect(await rows.locator('a').allTextContents()).toEqual(
      ['fourth', 'third', 'second', 'first'].map((name) => `POST /orders/${name}`),
    )
    await visit.context.close()
  })

  test('what masks take out of a record is nowhere in the page', async () => {
    const visit = await world.app.signIn('/live', { roles: ['auditor'] })
    const { page } = visit
    const heard: string[] = []
    page.on('response', async (response) => {
      if (response.url().includes('/gateways/decisions/')) heard.push(await response.text().catch(() => ''))
    })
    const id = await gateway('edge-1').ask('/orders/5?card=4711-0815', { claims: { scope: '' } })
    await page.getByRole('link', { name: 'GET /orders/5' }).click()
    await page.waitForURL(`**/why/${id}`)
    await page.getByText('/input/token/claims/plan').first().waitFor()
    await page.getByText('The whole record').click()
    await page.getByRole('region', { name: 'record', exact: true }).waitFor()
    const all = `${await page.content()}${heard.join()}`
    expect(heard.length).toBeGreaterThanOrEqual(2)
    expect(all).not.toContain(secretClaim)
    expect(all).not.toContain('4711-0815')
    await visit.end()
  })

  test('a page about one gateway shows the first that answers, and another one when it is chosen', async () => {
    const visit = await world.app.signIn('/gateway/upstreams')
    const { page } = visit
    for (const [path, query, kept] of [
      ['/gateway/upstreams', '', {}],
      ['/policies', '?tab=shadow&file=refunds.rego', { tab: 'shadow' }],
      ['/access', '?tab=route&route=read', { tab: 'route', route: 'read' }],
    ] as const) {
      await visit.goTo(path + query)
      const choice = page.getByRole('combobox', { name: 'Gateway' })
      await expect.poll(() => choice.inputValue()).toBe('edge-1')
      await choice.selectOption('edge-2')
      await page.waitForURL(/gateway=edge-2/)
      expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ ...kept, gateway: 'edge-2' })
      const parts = page.getByRole('navigation', { name: 'Parts' }).getByRole('link')
      for (const part of await parts.all()) expect(await part.getAttribute('href')).toContain('gateway=edge-2')
      await visit.expectUsable()
    }
    await visit.end()
  })

  test('whoever may not read sees why, and gets nothing', async () => {
    const visit = await world.app.signIn('/live', { roles: ['integrator'] })
    const { page } = visit
    await page.getByText('This needs the permission read or all. You are integrator.').waitFor()
    const statuses = await page.evaluate(`Promise.all(
      ['', '/decisions', '/decisions/stream', '/edge-1/routes'].map(async (path) =>
        (await fetch('/console/gateways' + path)).status))`)
    expect(statuses).toEqual([403, 403, 403, 403])
    await visit.goTo('/')
    await page.getByRole('heading', { name: /Hello/ }).waitFor()
    await visit.end()
  })
})
