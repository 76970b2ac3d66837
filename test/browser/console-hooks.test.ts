import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleWithRelay, startConsoleWithRelay } from '../support/console-with-relay.ts'
import { type Answer, startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Hooks in the console, with a relay and a receiver that fails. */

const failure: Answer = (_received, response) => void response.writeHead(503).end('down for maintenance')
const hourMs = 3_600_000

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleWithRelay
  beforeAll(async () => {
    app = await startConsoleWithRelay()
  })
  afterAll(() => app?.close())

  const api = async (method: string, path: string, body?: unknown) =>
    (await app.home.issuer.api(method, path, body)).body
  const startReceiver = async () => {
    const receiver = await startWebhookReceiver()
    onTestFinished(receiver.close)
    return receiver
  }
  /** Links of the page, not those around it. */
  const tab = (page: Page, name: string) => page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name })

  test('journey 9: what a receiver refused waits, is explained, and is sent again in order', async () => {
    await app.relay({ retrySchedule: [hourMs] })
    const receiver = await startReceiver()
    const visit = await app.signIn('/hooks/new', { roles: ['operator'] })
    const { page } = visit
    await page.getByLabel('Name').fill('CRM')
    await page.getByRole('textbox', { name: 'URL' }).fill(receiver.url)
    await page.getByLabel('Another: Events').fill('User.Data.Updated')
    await page.getByRole('button', { name: 'Create hook' }).click()

    await page.getByRole('button', { name: 'Send a test…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The receiver has taken it.').waitFor({ state: 'attached' })
    expect(receiver.received.map(({ body }) => [body.event, body['test']])).toEqual([['User.Data.Updated', true]])

    receiver.answerWith(failure)
    const { id } = await api('POST', '/users', { username: 'grace' })
    for (const name of ['Grace', 'Grace H.', 'Grace Hopper']) await api('PATCH', `/users/${id}`, { name })
    await receiver.until((received) => received.length === 2)
    await tab(page, 'Waiting').click()
    await page.getByText(`The receiver answered 503.`).waitFor()
    const lane = page.getByRole('row', { name: id })
    expect(await lane.textContent()).toMatch(
      /Waits for version 2 \(User\.Data\.Updated\) since .*One attempt, the next in [\w ]+\. 2 behind it\./,
    )
    await visit.expectUsable()

    receiver.answerWith((_received, response) => void response.writeHead(204).end())
    await lane.getByRole('button', { name: 'Send now' }).click()
    await receiver.until((received) => received.length === 5)
    const versions = () => receiver.received.slice(2).map(({ body }) => body.version)
    expect(versions()).toEqual([2, 3, 4])

    // Its attempts, side by side.
    await tab(page, 'Deliveries').click()
    await expect.poll(() => versionsThatArrived(page)).toEqual([2, 3, 4])
    const [second] = (await arrived(page)).filter(({ version }) => version === 2)
    await page.locator(`a[href$="/deliveries/${second!.id}"]`).click()
    const attempts = page.getByRole('region', { name: 'Attempts' }).getByRole('listitem')
    await expect.poll(() => attempts.count()).toBe(2)
    expect(await attempts.allTextContents()).toEqual([
      expect.stringMatching(/^503.*down for maintenance/),
      expect.stringMatching(/^204/),
    ])
    await attempts.last().getByText('Headers that were sent').click()
    expect(await attempts.last().locator('[data-changed] dt').allTextContents()).toContain('webhook-timestamp')
    await visit.expectUsable()

    // All that the filter matches, whatever page of it is shown: counted first.
    await page.getByRole('link', { name: 'Deliveries' }).click()
    await page.getByLabel('State').selectOption('delivered')
    await page.getByLabel('Event, such as User.*').fill('User.*')
    await page.getByRole('link', { name: 'Send what matches again…' }).click()
    await page.waitForURL(/replays\?.*state=succeeded/)
    await page.getByRole('button', { name: 'Count' }).click()
    await page.getByText('3 events would be sent again.').waitFor()
    await visit.expectUsable()
    expect(receiver.received.length).toBe(5)
    await page.getByRole('button', { name: 'Send 3 events again' }).click()
    await receiver.until((received) => received.length === 8)
    expect(versions()).toEqual([2, 3, 4, 2, 3, 4])
    await page.getByRole('row', { name: /delivered.*3 of 3.*done/ }).waitFor()

    // The next failure is the last: it is given up.
    await app.relay({ retrySchedule: [] })
    receiver.answerWith(failure)
    await api('PATCH', `/users/${id}`, { name: 'Rear Admiral Hopper' })
    await expect.poll(async () => (await deliveries(page, 'dead')).length).toBe(1)
    receiver.answerWith((_received, response) => void response.writeHead(204).end())
    await page.reload()
    await page.getByText('1 delivery failed until the last attempt.').waitFor()
    await page.getByRole('button', { name: 'Send all 1 again' }).click()
    await receiver.until((received) => received.length === 10)
    await expect.poll(() => versionsThatArrived(page)).toEqual([2, 3, 4, 5])
    await page.getByText('Nothing is given up any more.').waitFor()
    await visit.end()
  })

  const deliveries = (page: Page, state: string) =>
    api('GET', `/hooks/${/hooks\/(\w+)/.exec(page.url())![1]}/deliveries?state=${state}`)
  /** Of what happened, and not of tests. */
  const arrived = async (page: Page): Promise<{ id: string; version: number }[]> =>
    (await deliveries(page, 'succeeded')).filter(({ test }: { test: boolean }) => !test)
  const versionsThatArrived = async (page: Page) => (await arrived(page)).map(({ version }) => version).toSorted()

  test('a signature that a receiver refuses is explained, and nothing of it is sent', async () => {
    await app.relay()
    const receiver = await startReceiver()
    const hook = await api('POST', '/hooks', {
      ...{ name: 'CRM', events: ['Role.Created'], config: { url: receiver.url } },
    })
    await api('POST', '/roles', { name: 'Checked', description: 'Ä role' })
    await receiver.until((received) => received.length === 1)
    const visit = await app.signIn(`/hooks/${hook.id}`)
    const { page } = visit
    await page.getByRole('link', { name: 'Role.Created' }).click()
    await page.getByRole('link', { name: 'Check a signature' }).click()
    await page.getByRole('button', { name: 'Take the key of this hook' }).click()
    await expect.poll(() => page.getByLabel('Signing key').inputValue()).toBe(hook.signingKey)
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.method()} ${request.postData()}`))
    const [{ headers, raw }] = receiver.received as [(typeof receiver.received)[0]]
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    await page.getByLabel('Headers as they arrived').fill(lines.join('\n'))
    await page.getByLabel('Body as it arrived').fill(raw.toString())
    await page.getByText('The signature is genuine.').waitFor()
    await page.getByLabel('Body as it arrived').fill(raw.toString().replace('"Checked"', '"Forged"'))
    await page.getByText('The signature does not hold.').waitFor()
    await page.getByText(/The first byte that differs is number \d+: sent was Checked/).waitFor()
    await visit.expectUsable()
    expect(sent.filter((request) => !request.startsWith('GET'))).toEqual([])
    // The key is kept nowhere.
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).not.toContain(hook.signingKey)
    await visit.end()
  })

  test('its key is replaced, its headers are set, and what was given up is cancelled', async () => {
    await app.relay({ retrySchedule: [] })
    const receiver = await startReceiver()
    receiver.answerWith(failure)
    const hook = await api('POST', '/hooks', {
      ...{ name: 'ERP', events: ['Role.Created'], config: { url: receiver.url } },
    })
    await api('POST', '/roles', { name: 'Lost', description: 'Nobody hears of it' })
    const visit = await app.signIn(`/hooks/${hook.id}/settings`)
    const { page } = visit
    await page.getByLabel('Headers of your own: name 1').fill('Authorization')
    await page.getByLabel('Headers of your own: value 1').fill('Bearer of ours')
    await page.getByLabel('At most so many a minute').fill('600')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(async () => (await api('GET', `/hooks/${hook.id}`)).config)
      .toEqual({ url: receiver.url, headers: { Authorization: 'Bearer of ours' }, rateLimit: 600 })
    await page.getByRole('button', { name: 'Replace…' }).click()
    await page.getByLabel('The old key').selectOption({ label: 'Ends at once: it has leaked' })
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Replace the key' }).click()
    await expect
      .poll(async () => (await api('GET', `/hooks/${hook.id}/signing-key`)).signingKey)
      .not.toBe(hook.signingKey)

    await tab(page, 'Send again').click()
    await page.getByText('Narrow it down').waitFor()
    await page.getByRole('button', { name: 'Cancel all…' }).click()
    await visit.expectUsable()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel all' }).click()
    await page.getByText('Cancelled: 1.').waitFor({ state: 'attached' })
    expect((await deliveries(page, 'cancelled')).length).toBe(1)
    await visit.end()
  })

  test('an auditor reads all of it and sends nothing; 320 px are enough', async () => {
    const { id } = await api('POST', '/hooks', {
      ...{ name: 'Read', events: ['Role.Created'], config: { url: 'https://receiver.example.test/' } },
    })
    const visit = await app.signIn(`/hooks/${id}`, { roles: ['auditor'], viewport: { width: 320, height: 640 } })
    for (const path of ['', '/waiting', '/replays?state=dead', '/signatures', '/settings']) {
      await visit.goTo(`/hooks/${id}${path}`)
      await visit.expectUsable()
      expect([path, await visit.page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320])
    }
    await visit.goTo(`/hooks/${id}/replays?state=dead`)
    expect(await visit.page.getByRole('button', { name: 'Count' }).getAttribute('aria-disabled')).toBe('true')
    await visit.end()
  })
})
