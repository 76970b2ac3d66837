import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'
import { sha256, shippedRules, startPolicyFolder } from '../support/policy-folder.ts'
import { until } from '../support/until.ts'

/** Rules are read, tried, patched and saved in the console, and access is previewed, at a real gateway. */

const orders = 'https://api.test/orders'
const testsOfIt = `package surrogate.gateway_test

import data.surrogate.gateway

test_scope if {
	gateway.decision.reason == "insufficient_scope" with input as {"route": {"scopes": ["a"]}, "token": {"scopes": []}}
}
`
const banned = `package surrogate.gateway

deny contains {"reason": "banned"} if input.subject.id == "mallory"
`

const withoutPlan = `package surrogate.gateway

deny contains {"reason": "no_plan"} if input.token.claims.plan == "suspended"
`

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  let own: Awaited<ReturnType<typeof startPolicyFolder>>
  const asked: Gateway[] = []
  const ids: string[] = []

  beforeAll(async () => {
    app = await startConsoleInChromium({ consoleGateways: () => asked })
    const { issuer, baseUrl } = app.home.issuer
    const audience = `${baseUrl}/inspection`
    own = await startPolicyFolder(
      {
        'decision.rego': await shippedRules(),
        'decision_test.rego': testsOfIt,
        'data.json': '{"a": "secret-in-data"}',
      },
      {
        inspection: { audience, issuers: [issuer], savePolicies: true },
        members: (parts) => {
          const common = { audience: [orders], issuers: [parts.issuer.issuer, issuer], upstream: 'orders' }
          return {
            issuers: [{ issuer: parts.issuer.issuer }, { issuer }],
            routes: [
              { ...common, id: 'read', path: '/orders/{id}', methods: ['GET'], scopes: ['read:orders'] },
              { ...common, id: 'write', path: '/orders/{id}', methods: ['POST'], scopes: ['write:orders'] },
            ],
          }
        },
      },
    )
    asked.push({ name: 'edge-1', url: own.gateway.inspectionUrl!, audience })
    for (let index = 0; index < 9; index++) {
      const sub = index % 3 === 0 ? 'mallory' : 'alice'
      const token = await own.gateway.issuer.sign({ sub, client_id: 'shop', scope: 'read:orders' })
      const answer = await own.gateway.call(`/orders/${index}`, { token })
      await answer.text()
      ids.push(answer.headers.get('x-request-id')!)
    }
  })
  afterAll(async () => {
    await app?.close()
    await own?.close()
  })

  const replaceText = async (
    page: Awaited<ReturnType<ConsoleInChromium['open']>>['page'],
    name: string,
    text: string,
  ) => {
    const editor = page.getByRole('textbox', { name })
    await editor.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(text)
  }

  test('a new rule is tried against the last decisions, and copied as a patch that applies', async () => {
    const visit = await app.signIn('/policies')
    const { page } = visit
    await page.getByRole('textbox', { name: 'decision.rego' }).waitFor()
    expect(await page.content()).not.toContain('secret-in-data')
    await visit.expectUsable()
    await page.getByLabel('New file').fill('banned.rego')
    await page.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('link', { name: /^banned\.rego/ }).click()
    await replaceText(page, 'banned.rego', 'package surrogate.gateway\n\ndeny contains {"reason": "banned"} if {')
    const attempt = page.getByRole('button', { name: /^Compile, test/ })
    await attempt.click()
    await page.getByText('The rules do not compile.').waitFor()
    await page.getByText('banned.rego:3', { exact: true }).waitFor()
    await replaceText(page, 'banned.rego', banned)
    await attempt.click()
    await page.getByText('Of the last 9 decisions 3 change.').waitFor()
    await page.getByText('The test passes.').waitFor()
    const links = page.getByRole('list', { name: 'Decisions that change' }).getByRole('link')
    const found = await links.evaluateAll((all) => all.map((one) => (one as unknown as { pathname: string }).pathname))
    expect(found).toEqual([ids[6], ids[3], ids[0]].map((id) => `/console/why/${id}`))
    await visit.expectUsable()

    // A file that is changed, and one that goes.
    await page.getByRole('link', { name: /^decision\.rego/ }).click()
    await replaceText(page, 'decision.rego', `${(await shippedRules()).replace('# title: ', '# title: The ')}`)
    await page.getByRole('link', { name: /^decision_test\.rego/ }).click()
    await page.getByRole('button', { name: 'Take this file away' }).click()
    const patch = await page.getByRole('region', { name: 'patch' }).textContent()
    const copy = await mkdtemp(join(tmpdir(), 'surrogate-patch-'))
    await writeFile(join(copy, 'decision.rego'), await shippedRules())
    await writeFile(join(copy, 'decision_test.rego'), testsOfIt)
    execFileSync('git', ['init', '-q'], { cwd: copy })
    execFileSync('git', ['apply', '-'], { cwd: copy, input: patch! })
    const after = execFileSync('sh', ['-c', 'ls; cat banned.rego; grep title: decision.rego'], { cwd: copy }).toString()
    expect(after).toBe(`banned.rego\ndecision.rego\n${banned}# title: The Gateway decision\n`)
    await rm(copy, { recursive: true })
    expect(own.gateway.upstream.seen).toHaveLength(9)
    await visit.end()
  })

  test('saving asks for a fresh sign-in, keeps what was typed, and is in force at once', async () => {
    const { sql } = app.home.issuer
    const owner = await app.home.createMember('owner')
    const visit = await app.signIn('/policies', { person: owner, viewport: { width: 320, height: 740 } })
    const { page } = visit
    await page.getByLabel('New file').fill('banned.rego')
    await page.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('link', { name: /^banned\.rego/ }).click()
    await replaceText(page, 'banned.rego', banned)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    for (const table of ['authorizations', 'sessions'])
      await sql(`UPDATE ${table} SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`, [owner.id])
    await sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [owner.id])
    await page.getByRole('button', { name: 'Save to the folder' }).click()
    await signInOn(page, owner)
    await page.getByText('One file: banned.rego').waitFor()
    await expect(own.read('banned.rego')).rejects.toThrow('ENOENT')
    await page.getByRole('button', { name: 'Save to the folder' }).click()
    await page.getByText('Saved.').waitFor({ state: 'attached' })
    expect(await own.read('banned.rego')).toBe(banned)
    await until(async () => {
      const token = await own.gateway.issuer.sign({ sub: 'mallory', client_id: 'shop', scope: 'read:orders' })
      expect((await own.gateway.call('/orders/1', { token })).status).toBe(403)
    })
    // Both attempts are in the audit trail, without the text.
    await visit.goTo('/audit?logKey=Console.savePolicies')
    await page.getByText('2 rows', { exact: true }).waitFor()
    await page.getByRole('row').filter({ hasText: 'refused' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'done' }).getByRole('link').click()
    const saved = page.getByRole('list', { name: 'Files' }).getByRole('listitem')
    await saved.filter({ hasText: `There was none → ${sha256(banned).slice(0, 12)}` }).waitFor()
    expect(await page.getByRole('region', { name: 'request' }).textContent()).toBe(
      'PUT /console/gateways/edge-1/policies/files',
    )
    expect(await page.getByRole('region', { name: 'row' }).textContent()).not.toContain('mallory')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.expectUsable()
    await page.getByRole('link', { name: 'edge-1', exact: true }).click()
    await page.waitForURL(/\/policies\?gateway=edge-1/)
    await visit.end()
  })

  test('the playground takes the input of a request, and says units and rules', async () => {
    const visit = await app.signIn(`/policies?tab=playground&request=${ids[1]}`)
    const { page } = visit
    const input = page.getByRole('textbox', { name: 'Input' })
    await expect.poll(() => input.textContent()).toContain(ids[1])
    await page.getByRole('button', { name: 'Ask the rules' }).click()
    const result = page.getByRole('region', { name: 'result' })
    await expect.poll(() => result.textContent()).toContain('"allow": true')
    await page.getByText('Units').waitFor()
    await visit.expectUsable()
    await replaceText(page, 'Input', '{')
    await page.getByRole('button', { name: 'Ask the rules' }).click()
    await page.getByText('The input is no JSON.').waitFor()
    await visit.goTo('/policies?tab=shadow')
    await page.getByText('This gateway has none.').waitFor()
    await visit.end()
  })

  test('an auditor reads, and neither evaluates nor saves', async () => {
    const visit = await app.signIn('/policies', { roles: ['auditor'] })
    const { page } = visit
    const attempt = page.getByRole('button', { name: /^Compile, test/ })
    await page.getByRole('textbox', { name: /^(banned|decision)\.rego$/ }).waitFor()
    await attempt.scrollIntoViewIfNeeded()
    expect(await attempt.getAttribute('aria-disabled')).toBe('true')
    // A tip goes when the page is scrolled.
    await page.keyboard.press('Shift')
    await attempt.focus()
    await page.getByRole('tooltip', { name: /This needs the permission rbac or all/ }).waitFor()
    await visit.goTo('/access')
    await page.getByRole('heading', { name: 'Not for you' }).waitFor()
    // Nor by a request that the page would not make.
    const statuses = await page.evaluate(async () => {
      const send = (method: string, path: string, body: object) =>
        fetch(`/console/gateways/edge-1${path}`, {
          method,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }).then(({ status }) => status)
      return [
        await send('POST', '/try', { files: {} }),
        await send('POST', '/access', { tokens: [] }),
        await send('PUT', '/policies/files', { files: { 'x.rego': { text: 'package x', replaces: null } } }),
      ]
    })
    expect(statuses).toEqual([403, 403, 403])
    await visit.end()
  })

  test('a person and an application: routes and methods, with the line; a route: the roles', async () => {
    const { api } = app.home.issuer
    const made = async (path: string, body: object): Promise<string> => (await api('POST', path, body)).body.id
    const resource = await made('/resources', { name: 'Orders', indicator: orders })
    const scope = await made(`/resources/${resource}/scopes`, { name: 'read:orders' })
    const write = await made(`/resources/${resource}/scopes`, { name: 'write:orders' })
    const role = await made('/roles', { name: 'Reader', description: 'Reads', scopeIds: [scope] })
    const shop = await made('/applications', { name: 'Shop', type: 'SPA' })
    const ada = await app.home.flow.createPerson()
    await api('POST', `/users/${ada.id}/roles`, { roleIds: [role] })
    const visit = await app.signIn('/access')
    const { page } = visit
    await page.getByLabel('Person').fill(ada.username)
    await page.getByLabel('Application').selectOption(shop)
    await page.getByRole('button', { name: 'Show what they may do' }).click()
    const rows = page.getByRole('list', { name: 'Routes and methods' }).getByRole('listitem')
    await rows.first().waitFor()
    const told = (await rows.allTextContents()).map((text) => text.replace(/The line.*/, ''))
    expect(told).toEqual([
      'GET /orders/1read · allowed',
      'POST /orders/1write · 401 insufficient_scope · lacks write:orders',
    ])
    await visit.expectUsable()
    await page.getByRole('button', { name: 'The line for POST write' }).click()
    await page.getByRole('link', { name: /^decision\.rego:\d+$/ }).waitFor()
    expect(new URL(page.url()).searchParams.get('person')).toBe(ada.username)
    await page.getByRole('link', { name: 'denied' }).click()
    await expect.poll(() => rows.count()).toBe(1)

    // What a role in an organization gives counts there, and so does a claim of the script.
    const organizationRole = await made('/organization-roles', {
      name: 'Clerk',
      type: 'User',
      resourceScopeIds: [write],
    })
    const acme = await made('/organizations', { name: 'Acme' })
    await api('POST', `/organizations/${acme}/users`, { userIds: [ada.id] })
    await api('PUT', `/organizations/${acme}/users/${ada.id}/roles`, { organizationRoleIds: [organizationRole] })
    const script = 'const getCustomJwtClaims = () => ({ plan: "suspended" })'
    await api('PUT', '/configs/jwt-customizer/access-token', { script })
    await own.write('plans.rego', withoutPlan)
    await until(async () => {
      const token = await own.gateway.issuer.sign({ scope: 'read:orders', client_id: 'shop', plan: 'suspended' })
      expect((await own.gateway.call('/orders/1', { token })).status).toBe(403)
    })
    await page.reload()
    await page.getByRole('link', { name: 'Acme' }).click()
    await page.getByRole('link', { name: 'all', exact: true }).click()
    await expect
      .poll(() => rows.allTextContents())
      .toEqual([
        expect.stringContaining('GET /orders/1read · 403 no_plan'),
        expect.stringContaining('POST /orders/1write · 403 no_plan'),
      ])
    await api('DELETE', '/configs/jwt-customizer/access-token')
    await page.reload()
    await expect
      .poll(() => rows.allTextContents())
      .toEqual([
        expect.stringContaining('GET /orders/1read · allowed'),
        expect.stringContaining('POST /orders/1write · allowed'),
      ])
    await visit.expectUsable()

    await page.getByRole('link', { name: 'A route' }).click()
    await page.getByRole('link', { name: 'Reader' }).waitFor()
    await page.setViewportSize({ width: 320, height: 740 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })
})
