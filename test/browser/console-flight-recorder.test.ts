import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium, startChromium } from '../support/chromium.ts'
import type { Person } from '../support/code-flow.ts'
import { type ConsoleVisit, signInOn, visitsOf } from '../support/console-in-chromium.ts'
import { documentedScript } from '../support/documented-script.ts'
import { runProcess } from '../support/process.ts'
import { type RecordedPlace, startRecordedPlace } from '../support/recorded-session.ts'

/**
 * Journey 7: support acts for a customer through real gateways, a webhook hears of it, and one page shows all of it,
 * ends it, and hands it out signed.
 */

const screenshots = process.env['SCREENSHOTS']
const picture = async (page: Page, name: string) => {
  if (!screenshots) return
  await mkdir(screenshots, { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.screenshot({ path: `${screenshots}/${name}-${colorScheme}.png`, fullPage: true })
  }
}

describe.skipIf(!chromium)('in Chromium', { timeout: 120_000 }, () => {
  let browser: Browser
  let verifying: string
  beforeAll(async () => {
    browser = await startChromium()
    verifying = await mkdtemp(join(tmpdir(), 'surrogate-verify-'))
    await writeFile(join(verifying, 'verify.mjs'), await documentedScript('impersonation.md', /^\/\/ node verify\.mjs/))
    await symlink(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(verifying, 'node_modules'))
  })
  afterAll(async () => {
    await browser?.close()
    if (verifying) await rm(verifying, { recursive: true })
  })

  const enter = async (place: RecordedPlace, path: string, role: 'support' | 'auditor' = 'support') => {
    const visit = await visitsOf(browser, place.baseUrl)()
    const person = await place.createMember(role)
    await visit.goTo(path)
    await signInOn(visit.page, person)
    await visit.page.waitForURL(`${place.baseUrl}/console${path}`)
    return { ...visit, person }
  }
  /** Asks for it in the console, with reason and ticket; the application of support goes on. */
  const act = async (place: RecordedPlace, { page, person }: ConsoleVisit & { person: Person }, ticket: string) => {
    await page.getByLabel('Reason').fill('The invoice is wrong')
    await page.getByLabel('Ticket').fill(ticket)
    await page.getByRole('button', { name: 'Make a subject token' }).click()
    const token = await page.getByRole('region', { name: 'subject token', exact: true }).textContent()
    return place.exchange(token!, person)
  }
  const exported = async (page: Page): Promise<string> => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export' }).click(),
    ])
    const path = join(verifying, download.suggestedFilename())
    await download.saveAs(path)
    return path
  }
  const verify = (place: RecordedPlace, path: string) =>
    runProcess(process.execPath, ['verify.mjs', path, `${place.baseUrl}/oidc`], { cwd: verifying })
  const line = (page: Page) => page.getByRole('list', { name: 'Time line' })
  const effects = (page: Page) => page.getByRole('list', { name: 'Gateways' })

  const journey = async (place: RecordedPlace) => {
    const names = Object.keys(place.gateways)
    const [first, last] = [names[0]!, names.at(-1)!]
    const visit = await enter(place, `/impersonations/new?user=${place.customer.id}`)
    const { page } = visit
    const { sid, token } = await act(place, visit, 'T-7')
    await visit.goTo(`/impersonations/${sid}`)
    await page.getByRole('heading', { name: `Sam support as ${place.customer.name}` }).waitFor()
    await page.getByText('going on').waitFor()

    // What happens from here on comes by itself.
    expect(await place.ask(first, token, 'GET', '/orders/1')).toBe(200)
    expect(await place.ask(last, token, 'POST', '/orders')).toBe(200)
    expect(await place.ask(last, token, 'POST', '/refunds')).toBe(403)
    await place.receiver.until((received) => received.some(({ body }) => body['sid'] === sid))
    const told = line(page)
    await told.getByText('GET /orders/1').waitFor()
    await told.getByText('POST /refunds').waitFor()
    await told.getByText('delivered').waitFor()
    const text = await told.innerText()
    for (const [pattern, count] of [
      [/Sam support asked for a subject token in the console/, 1],
      [/Allowed by surrogate\/impersonation\/decision, policies \w+: no rule objected/, 2],
      [/Support desk exchanged it: the session began/, 1],
      [/GET \/orders\/1\s+allowed/, 1],
      [/POST \/orders\s+allowed/, 1],
      [/POST \/refunds\s+denied\s+403 impersonation_denied/, 1],
      [/Orders API changed something: updateUser\s+PATCH \/users\/\w+ · customData/, 1],
      [/User\.Data\.Updated\s+Bookkeeping\s+delivered\s+1 attempt · answered 204/, 1],
    ] as const)
      expect(text.match(new RegExp(pattern, 'g')) ?? [], `${pattern} in ${text}`).toHaveLength(count)
    await visit.expectUsable()
    await picture(page, `time-line-${names.length}`)

    await page.getByRole('button', { name: 'End now' }).click()
    for (const name of names) await effects(page).getByText(`${name}refuses its tokens`, { exact: false }).waitFor()
    // A tick is a promise: the very next request is refused.
    for (const name of names) expect(await place.ask(name, token, 'GET', '/orders/2')).toBe(401)
    await told.getByText(/^Ended by Sam support/).waitFor()
    await told
      .getByText('GET /orders/2')
      .nth(names.length - 1)
      .waitFor()
    await visit.expectUsable()
    await picture(page, `ended-${names.length}`)

    await page.getByLabel('Show').selectOption('Requests')
    await page.waitForURL(/show=requests/)
    expect(await told.getByRole('listitem').count()).toBe(3 + names.length)
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await picture(page, `narrow-${names.length}`)
    return { visit, sid }
  }

  const checkExport = async (place: RecordedPlace, { page }: ConsoleVisit, sid: string) => {
    const path = await exported(page)
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
    const [head, ...rest] = lines.map((one) => JSON.parse(one))
    expect(head).toMatchObject({ kind: 'impersonation', isComplete: true, session: { id: sid, ticket: 'T-7' } })
    const kinds = rest.map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === 'request')).toHaveLength(3 + Object.keys(place.gateways).length)
    for (const kind of ['minted', 'exchanged', 'changed', 'event', 'ended', 'signature']) expect(kinds).toContain(kind)
    expect(await verify(place, path)).toEqual({
      code: 0,
      output: expect.stringMatching(`^${lines.length - 1} lines about ${sid}, signed `),
    })
    // Any byte, whatever it stands in.
    const bytes = await readFile(path)
    for (const at of [1, bytes.indexOf('T-7'), bytes.indexOf('"denied"') + 2, bytes.length - 10]) {
      const changed = Buffer.from(bytes)
      changed[at] = changed[at]! ^ 1
      await writeFile(`${path}.changed`, changed)
      expect((await verify(place, `${path}.changed`)).code, `byte ${at}`).not.toBe(0)
    }
    const { body } = await place.api('GET', `/logs?logKey=Console.exportImpersonation`)
    expect(body).toMatchObject([{ payload: { params: { id: sid }, userId: place.customer.id } }])
  }

  describe('what surrogate start starts', () => {
    let place: RecordedPlace
    beforeAll(async () => {
      place = await startRecordedPlace({ together: true })
    }, 120_000)
    afterAll(() => place?.close())

    test('is recorded from the reason to the last delivery, ended and handed out signed', async () => {
      const { visit, sid } = await journey(place)
      await checkExport(place, visit, sid)
      await visit.end()
    })
  })

  describe('an issuer, a relay and two gateways', () => {
    let place: RecordedPlace
    beforeAll(async () => {
      place = await startRecordedPlace({ together: false })
    }, 120_000)
    afterAll(() => place?.close())

    test('are recorded on one line; each gateway gets its tick, and one that is away is told as such', async () => {
      const { visit, sid } = await journey(place)
      await checkExport(place, visit, sid)
      await visit.page.setViewportSize({ width: 1280, height: 860 })

      await visit.goTo(`/impersonations/new?user=${place.customer.id}`)
      const next = await act(place, visit, 'T-8')
      const { child } = place.gateways['edge-2']!
      child.signalGroup('SIGKILL')
      await child.exited
      expect(await place.ask('edge-1', next.token, 'GET', '/orders/3')).toBe(200)
      await visit.goTo(`/impersonations/${next.sid}`)
      const { page } = visit
      await page.getByText('edge-2 does not answer, so its requests are missing here.').waitFor()
      await line(page).getByText('GET /orders/3').waitFor()

      // An auditor sees that too, and why it is not theirs to end.
      const auditor = await enter(place, `/impersonations/${next.sid}`, 'auditor')
      const end = auditor.page.getByRole('button', { name: 'End now' })
      await line(auditor.page).getByText('GET /orders/3').waitFor()
      await end.focus()
      await auditor.page.getByRole('tooltip').getByText('This needs the permission impersonation or all.').waitFor()
      expect(await end.getAttribute('aria-disabled')).toBe('true')
      await end.press('Escape')
      await auditor.page.getByRole('tooltip').waitFor({ state: 'detached' })
      await auditor.end()

      await page.getByRole('button', { name: 'End now' }).click()
      await effects(page).getByText('edge-1refuses its tokens').waitFor()
      await effects(page).getByText('edge-2does not say whether it refuses.').waitFor()
      await picture(page, 'one-away')
      const [head] = (await readFile(await exported(page), 'utf8')).split('\n')
      expect(JSON.parse(head!)).toMatchObject({
        isComplete: false,
        missingGateways: [{ gateway: 'edge-2', because: expect.stringMatching(/./) }],
      })
      await visit.end()
    })
  })
})
