import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type GatewaysInChromium, startGatewaysInChromium } from '../support/gateways-in-chromium.ts'

/** Why a request ended as it did, and gateways as they run. */

describe.skipIf(!chromium)('in Chromium', () => {
  let world: GatewaysInChromium
  beforeAll(async () => {
    world = await startGatewaysInChromium('edge-1', 'edge-2')
  })
  afterAll(() => world?.close())

  const gateway = (name: 'edge-1' | 'edge-2') => world.gateways[name]!

  test('a missing scope: the stage, the scope with the roles that carry it, the rule with its line', async () => {
    const { api } = world.app.home.issuer
    const resource = (await api('POST', '/resources', { name: 'Orders', indicator: 'https://api.test/orders' })).body
    const scope = (await api('POST', `/resources/${resource.id}/scopes`, { name: 'write:orders' })).body
    await api('POST', '/roles', { name: 'Clerk', description: 'Writes', scopeIds: [scope.id] })
    const id = await gateway('edge-2').ask('/orders/42', { method: 'POST', claims: { sub: 'ada' } })

    // What the caller was told leads here.
    const visit = await world.app.signIn('/why', { roles: ['auditor'] })
    const { page } = visit
    await page.getByLabel('Request id').fill(id)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'POST /orders/42' }).waitFor()
    await page.getByText('The token lacks write:orders, which the route write needs.').waitFor()
    const stages = page.getByRole('list', { name: 'How far it came' }).getByRole('listitem')
    expect(await stages.allTextContents()).toEqual([
      ...['Request', 'Route', 'Token', 'Sign-in', 'Rate limit'].map((name) => `${name} (passed)`),
      'Policy (ended here)',
      'Upstream (not reached)',
    ])
    const remedies = page.getByRole('list', { name: 'What would have allowed it' }).getByRole('listitem')
    await remedies.filter({ hasText: 'The scope write:orders in the token.' }).waitFor()
    await remedies.getByRole('link', { name: 'Clerk' }).waitFor()
    await page
      .getByText(/decision\.rego:\d+/)
      .first()
      .waitFor()
    await page
      .getByText(/stopped at line \d+/)
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'ada' }).waitFor()
    await page.getByRole('button', { name: 'Copy as curl: the request' }).waitFor()
    expect(await page.getByRole('region', { name: 'request as curl' }).textContent()).toBe(
      `curl -X POST '${gateway('edge-2').url}/orders/42' \\\n  -H "Authorization: Bearer $TOKEN"`,
    )
    expect(await page.getByRole('link', { name: 'Open in the playground' }).getAttribute('href')).toBe(
      `/console/policies?tab=playground&request=${id}`,
    )
    await visit.end()
  })

  test('no route takes it: near misses, no token, and the remedy that another route is', async () => {
    const id = await gateway('edge-1').ask('/oders/42')
    const visit = await world.app.signIn(`/why/${id}`, { roles: ['auditor'], viewport: { width: 320, height: 640 } })
    const { page } = visit
    await page.getByText(/No route takes GET .*\/oders\/42\./).waitFor()
    await page.getByText('The route read says "orders" where the request says "oders".').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })

  test('an id that no gateway has, with one of them away', async () => {
    const visit = await world.app.signIn('/', { roles: ['auditor'] })
    const { page } = visit
    gateway('edge-2').line.cut(true)
    await visit.goTo('/why/00000000-0000-0000-0000-000000000000')
    await page.getByRole('heading', { name: 'No gateway has this request' }).waitFor()
    await page.getByText('edge-2 did not answer').waitFor()
    await visit.expectUsable()
    gateway('edge-2').line.cut(false)
    const id = await gateway('edge-2').ask('/public/1')
    await page.keyboard.press('Control+K')
    await page.getByRole('searchbox').fill(id)
    await page.getByRole('menuitem', { name: 'Why it ended so' }).click()
    await page.getByText('It was allowed.').waitFor()
    await visit.end()
  })

  test('home shows what was denied lately', async () => {
    await gateway('edge-1').ask('/orders/home/refund', { method: 'POST', claims: { sub: 'eve' } })
    const visit = await world.app.signIn('/', { roles: ['auditor'] })
    const { page } = visit
    await page.getByRole('region', { name: 'Denied lately' }).getByText('POST /orders/home/refund').waitFor()
    await page.getByRole('link', { name: 'POST /orders/home/refund' }).click()
    await page.getByText('The policy surrogate/gateway/decision says no: not_the_boss').waitFor()
    await visit.end()
  })

  test('a gateway as it runs: routes, which of them takes a request, upstreams, issuers, limits', async () => {
    const visit = await world.app.signIn('/gateway?gateway=edge-2', { roles: ['auditor'] })
    const { page } = visit
    const routes = page.getByRole('list', { name: 'Routes', exact: true }).getByRole('listitem')
    await expect.poll(() => routes.count()).toBe(4)
    await page.getByLabel('Address').fill('/orders/42/refund')
    await page.getByRole('button', { name: 'Match', exact: true }).click()
    await page.waitForURL(/url=%2Forders%2F42%2Frefund/)
    await page.getByText('No route takes it.').waitFor()
    await page.getByText('The route refund takes POST only.').waitFor()
    await page.getByLabel('Method', { exact: true }).selectOption('POST')
    await page.getByRole('button', { name: 'Match', exact: true }).click()
    await page.getByRole('status').getByRole('link', { name: 'refund' }).click()
    await page.getByRole('heading', { name: 'The route refund' }).waitFor()
    await visit.expectUsable()
    for (const [tab, text] of [
      ['Upstreams', '0 under way'],
      ['Issuers and keys', world.app.home.issuer.issuer],
      ['Limits', 'targetLength'],
    ] as const) {
      await page.getByRole('link', { name: tab }).click()
      await page.getByText(text).first().waitFor()
      await visit.expectUsable()
    }
    expect(page.url()).toContain('gateway=edge-2')
    await visit.end()
  })
})
