import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium, startChromium } from '../support/chromium.ts'
import { signInOn, visitsOf } from '../support/console-in-chromium.ts'
import { type RecordedPlace, startRecordedPlace } from '../support/recorded-session.ts'
import { until } from '../support/until.ts'

/**
 * Journey 8: a denied request is found in the tail; its page shows the rule with its line; a changed rule is tried as
 * shadow, which says what else changes; its tests are green; it is put in force, and the page says so.
 */

/** @param limit of an order's number, beyond which nobody orders. */
const rule = (limit: number) => `package surrogate.gateway

deny contains {"reason": "order_too_large", "detail": "Ask the wholesale desk."} if {
	to_number(input.request.segments[1]) > ${limit}
}
`
const testOf = (limit: number) => `package surrogate.gateway_test

import data.surrogate.gateway

test_more_than_the_limit if {
	some reason in gateway.deny with input as {"request": {"segments": ["orders", "${limit + 1}"]}}
	reason.reason == "order_too_large"
}
`

const shipped = fileURLToPath(new URL('../../policies/gateway/decision.rego', import.meta.url))

describe.skipIf(!chromium)('in Chromium', { timeout: 120_000 }, () => {
  let browser: Browser
  let folder: string
  beforeAll(async () => {
    browser = await startChromium()
    folder = await mkdtemp(join(tmpdir(), 'surrogate-journey-'))
  })
  afterAll(async () => {
    await browser?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  const write = async (name: string, limit: number) => {
    await mkdir(join(folder, name), { recursive: true })
    await copyFile(shipped, join(folder, name, 'decision.rego'))
    await writeFile(join(folder, name, 'size.rego'), rule(limit))
    await writeFile(join(folder, name, 'size_test.rego'), testOf(limit))
  }
  const start = async (together: boolean): Promise<RecordedPlace> => {
    await write('live', 100)
    await write('shadow', 100)
    const policies = { path: join(folder, 'live'), shadow: join(folder, 'shadow') }
    return startRecordedPlace({ together, policies })
  }
  const enter = async (place: RecordedPlace, path: string, role: 'owner' | 'auditor') => {
    const visit = await visitsOf(browser, place.baseUrl)()
    const person = await place.createMember(role)
    await visit.goTo(path)
    await signInOn(visit.page, person)
    await visit.page.waitForURL(`${place.baseUrl}/console${path}`)
    return visit
  }
  /** Of somebody who acts for the customer. */
  const tokenOf = async (place: RecordedPlace) => {
    const actor = await place.createMember('support')
    const { body } = await place.api('POST', '/subject-tokens', { userId: place.customer.id, context: { reason: 'x' } })
    return (await place.exchange(body.subjectToken, actor)).token
  }
  const replaceText = async (page: Page, file: string, text: string) => {
    await page.getByRole('link', { name: new RegExp(`^${file}`) }).click()
    await page.getByRole('textbox', { name: file }).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(text)
  }

  const journey = async (place: RecordedPlace, gateway: string) => {
    const token = await tokenOf(place)
    const visit = await enter(place, '/live?verdict=denied', 'owner')
    const { page } = visit
    await page.getByText('live', { exact: true }).waitFor()
    const rows = page.getByRole('list', { name: 'Requests' }).getByRole('listitem')
    expect(await place.ask(gateway, token, 'GET', '/orders/150')).toBe(403)
    await rows.filter({ hasText: 'order_too_large' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/why\//)
    await page.getByText('says no: order_too_large, "Ask the wholesale desk."').waitFor()
    await page.getByText('size.rego:3').first().waitFor()
    await visit.expectUsable()
    const why = page.url()

    await page.getByRole('link', { name: 'Open in the playground' }).click()
    await expect.poll(() => page.getByRole('textbox', { name: 'Input' }).textContent()).toContain('/orders/150')

    // As a shadow first: what else would change?
    await write('shadow', 200)
    await visit.goTo(`/policies?tab=shadow&gateway=${gateway}`)
    const differences = page.getByRole('list', { name: 'Differences' }).getByRole('listitem')
    await until(async () => {
      await place.ask(gateway, token, 'GET', '/orders/160')
      await page.reload()
      await differences.first().waitFor({ timeout: 2_000 })
    }, 60_000)
    expect(await differences.first().textContent()).toMatch(/order_too_large/)
    await place.ask(gateway, token, 'GET', '/orders/300')

    // The rule and its test, tried and saved.
    await visit.goTo(`/policies?gateway=${gateway}`)
    await replaceText(page, 'size.rego', rule(200))
    await replaceText(page, 'size_test.rego', testOf(200))
    await page.getByRole('button', { name: /^Compile, test/ }).click()
    await page.getByText('The test passes.').waitFor()
    await page.getByText(/Of the last \d+ decisions \d+ change/).waitFor()
    expect(await place.ask(gateway, token, 'GET', '/orders/150')).toBe(403)
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Save to the folder' }).click()
    await until(async () => expect(await place.ask(gateway, token, 'GET', '/orders/150')).toBe(200))
    expect(await place.ask(gateway, token, 'GET', '/orders/300')).toBe(403)
    await page.goto(why)
    await page.getByText('Asked again, the same request is allowed').waitFor()
    await page.getByText('The policies have changed since').waitFor()
    await visit.end()
  }

  test('against separate processes with two gateways, of which one goes away', async () => {
    const place = await start(false)
    try {
      await journey(place, 'edge-1')
      const visit = await enter(place, '/live', 'auditor')
      const { page } = visit
      await page.getByText('GET /orders/300').first().waitFor()
      const { child } = place.gateways['edge-2']!
      child.signalGroup('SIGKILL')
      await child.exited
      await page.getByText('edge-2 is away').waitFor()
      const token = await tokenOf(place)
      await place.ask('edge-1', token, 'GET', '/orders/7')
      await page.getByRole('link', { name: 'GET /orders/7' }).click()
      await page.getByText('It was allowed.').waitFor()
      await visit.goTo('/gateway?gateway=edge-2')
      await page.getByText('edge-2 is away').waitFor()
      await visit.end()
    } finally {
      await place.close()
    }
  })

  test('against "surrogate start"', async () => {
    const place = await start(true)
    try {
      await journey(place, 'gateway')
    } finally {
      await place.close()
    }
  })
})
