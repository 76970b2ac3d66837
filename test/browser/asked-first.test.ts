import { mkdir } from 'node:fs/promises'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askingPolicies } from '../support/asked-first.ts'
import { chromium } from '../support/chromium.ts'
import { accessTokenType, formOf, request } from '../support/issuer.ts'
import type { TestApplication } from '../support/issuer-data.ts'
import { accessibilityProblems } from '../support/pages-in-chromium.ts'
import { type People, type PeopleClient, password, startPeople } from '../support/people.ts'
import { startWebsite, type Website } from '../support/website.ts'

/** Support asks in one browser, the customer answers in another, and ends it there. */

describe.skipIf(!chromium)('in two browsers', () => {
  const screenshots = process.env['SCREENSHOTS']
  let policies: Awaited<ReturnType<typeof askingPolicies>>
  let people: People
  let support: Website
  let staffClient: PeopleClient
  let desk: TestApplication
  let customer: { id: string }
  let orders: string
  let actorToken = ''

  /** The support desk, as an integrator would write it: what it asks its backend is here. */
  const asked: { requestId?: string; number?: string; token?: string } = {}
  const steps: Record<string, (query: URLSearchParams) => Promise<string>> = {
    '/signed-in': async (query) => {
      actorToken = (await staffClient.redeem(query.get('code')!)).body.access_token
      return 'Welcome, support'
    },
    '/ask': async () => {
      const reason = 'Your invoice of May <b>is</b> wrong'
      const body = {
        userId: customer.id,
        actorToken,
        reason,
        ticket: 'T-7',
        resource: orders,
        scopes: ['read:orders', 'write:orders'],
      }
      Object.assign(asked, (await people.issuer.api('POST', '/subject-tokens', body)).body)
      return `Tell the customer: ${asked.number}`
    },
    '/go-on': async () => {
      const minted = await people.issuer.api('POST', '/subject-tokens', { requestId: asked.requestId })
      if (minted.status !== 201) return `Not yet: ${minted.body.data.status}`
      const exchanged = await people.issuer.exchange(desk, minted.body.subjectToken, {
        ...{ resource: orders, scope: 'read:orders write:orders' },
        ...{ actor_token: actorToken, actor_token_type: accessTokenType },
      })
      asked.token = exchanged.body.access_token
      const { access, iat, exp } = await people.issuer.verify(asked.token!, orders)
      return `Acting as Ada: ${access}, ${exp! - iat!} seconds`
    },
    '/check': async () => {
      const answer = await request(`${people.issuer.issuer}/token/introspection`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${desk.id}:${desk.secret}`).toString('base64')}` },
        body: formOf({ token: asked.token }),
      })
      return answer.body.active ? 'It goes on' : 'The customer has ended it'
    },
  }

  beforeAll(async () => {
    policies = await askingPolicies()
    people = await startPeople({ policies: { current: () => policies.set } })
    const { issuer } = people
    support = await startWebsite(async ({ path }) => {
      const { pathname, searchParams } = new URL(path, 'http://desk.test')
      return { body: `<!doctype html><title>Support</title><h1>${await steps[pathname]?.(searchParams)}</h1>` }
    })
    staffClient = await people.createClient({ name: 'Support desk', redirectUri: `${support.url}/signed-in` })
    desk = await issuer.createApplication({ name: 'Support desk' })
    orders = await issuer.createResource({
      indicator: 'https://api.shop.example/orders',
      scopes: ['read:orders', 'write:orders'],
    })
    await issuer.api('POST', '/users', { username: 'sam', password, name: 'Sam of Support' })
    customer = people.ada
    await issuer.grantUser(customer.id, orders, ['read:orders', 'write:orders'])
    await issuer.sql(`UPDATE users SET custom_data = '{"askFirst": true}' WHERE id = $1`, [customer.id])
    if (screenshots) await mkdir(screenshots, { recursive: true })
  })
  afterAll(async () => {
    await support?.close()
    await people?.close()
    await policies?.remove()
  })

  const open = async (options?: BrowserContextOptions) => (await people.browser.newContext(options)).newPage()
  const picture = async (page: Page, name: string) => {
    if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true })
  }
  const heading = (page: Page) => page.locator('h1').textContent()
  const account = () => `${people.issuer.baseUrl}/account/impersonations`

  /** Signed in at the page where requests stand. */
  const atHome = async (options?: BrowserContextOptions) => {
    const page = await open(options)
    await page.goto(account())
    await people.signIn(page)
    await page.getByRole('heading', { level: 1, name: 'Acting for you' }).waitFor()
    return page
  }

  const askAtDesk = async (page: Page) => {
    await page.goto(`${support.url}/ask`)
    return (await heading(page))!.replace('Tell the customer: ', '')
  }

  test('the customer compares the number, allows less than was asked for, and ends it', async () => {
    const staff = await open()
    await staff.goto(staffClient.authorizationUrl())
    await staff.getByLabel('Email').fill('sam')
    await staff.getByLabel('Password').fill(password)
    await staff.getByRole('button', { name: 'Sign in' }).click()
    await staff.waitForURL(`${support.url}/signed-in*`)
    const number = await askAtDesk(staff)
    await staff.goto(`${support.url}/go-on`)
    expect(await heading(staff)).toBe('Not yet: pending')

    const ada = await atHome()
    await ada.getByRole('heading', { name: 'Sam of Support asks to act in your name' }).waitFor()
    expect(await ada.locator('.number').textContent()).toBe(number)
    const text = await ada.locator('main').innerText()
    expect(text).toContain('Your invoice of May <b>is</b> wrong')
    for (const part of ['T-7', 'read:orders', 'write:orders', orders]) expect(text).toContain(part)
    // Allowing takes a proof of who it is; refusing does not.
    expect(await ada.getByRole('button', { name: 'Allow' }).count()).toBe(0)
    expect(await ada.getByRole('button', { name: `Refuse the request with the number ${number}` }).count()).toBe(1)
    await picture(ada, 'asked')
    await ada.getByRole('link', { name: 'Confirm' }).first().click()
    await ada.getByLabel('Password').fill(password)
    await ada.locator('main').getByRole('button').last().click()
    await ada.waitForURL(`${account()}*`)
    expect(await accessibilityProblems(ada)).toEqual([])
    await picture(ada, 'asked-confirmed')
    await ada.getByLabel('Only look, change nothing').check()
    await ada.getByRole('button', { name: `Allow the request with the number ${number}` }).click()
    await ada.getByRole('status').filter({ hasText: 'You have allowed it.' }).waitFor()

    await staff.goto(`${support.url}/go-on`)
    expect(await heading(staff)).toBe('Acting as Ada: read, 900 seconds')
    await ada.goto(account())
    await ada.getByText('Only looking, no changes').waitFor()
    expect(await accessibilityProblems(ada)).toEqual([])
    await picture(ada, 'acting')
    await staff.goto(`${support.url}/check`)
    expect(await heading(staff)).toBe('It goes on')
    await ada.getByRole('button', { name: 'End now: Sam of Support' }).click()
    await ada.getByRole('status').filter({ hasText: 'It is ended.' }).waitFor()
    await staff.goto(`${support.url}/check`)
    expect(await heading(staff)).toBe('The customer has ended it')
    expect(await ada.getByRole('button', { name: /End now/ }).count()).toBe(0)

    // On a telephone, in the dark, without scripts; and the answer is no.
    const another = await askAtDesk(staff)
    expect(another).not.toBe(number)
    const phone = await atHome({ viewport: { width: 320, height: 640 }, colorScheme: 'dark', javaScriptEnabled: false })
    await picture(phone, 'asked-320-dark')
    expect(await phone.evaluate('document.documentElement.scrollWidth').catch(() => 320)).toBeLessThanOrEqual(320)
    await phone.getByRole('button', { name: `Refuse the request with the number ${another}` }).click()
    await phone.getByRole('status').filter({ hasText: 'You have refused it.' }).waitFor()
    await staff.goto(`${support.url}/go-on`)
    expect(await heading(staff)).toBe('Not yet: refused')
    await picture(phone, 'refused-320-dark')

    // What was open in another window meanwhile says so, and does nothing.
    const third = await askAtDesk(staff)
    await ada.goto(account())
    await phone.goto(account())
    await phone.getByRole('button', { name: `Refuse the request with the number ${third}` }).click()
    await ada.getByRole('button', { name: `Allow the request with the number ${third}` }).click()
    await ada.getByRole('alert').filter({ hasText: 'Nobody waits for this answer any more.' }).waitFor()
    await staff.goto(`${support.url}/go-on`)
    expect(await heading(staff)).toBe('Not yet: refused')
  })
})
