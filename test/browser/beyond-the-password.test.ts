import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { newId } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import { chromium } from '../support/chromium.ts'
import { type MailServer, startMailServer, textsOf } from '../support/mail-server.ts'
import { localProviders, smtpConfig } from '../support/messages.ts'
import { atTheApplication, type PagesInChromium, startPagesInChromium } from '../support/pages-in-chromium.ts'
import { startTestRelay, testRelayConfig } from '../support/relay.ts'
import { until } from '../support/until.ts'

/** Registering, signing in by code, and setting a lost password anew: with mails that a server really takes. */

const settings = {
  signUp: { identifiers: ['email'], password: true, verify: true },
  signIn: { methods: [{ identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }] },
}

describe.skipIf(!chromium)('in Chromium, with mails', () => {
  let pages: PagesInChromium
  let mails: MailServer
  const closers: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    mails = await startMailServer()
    closers.push(() => mails.close())
    pages = await startPagesInChromium({ settings, sends: 'connectors' })
    closers.push(() => pages.close())
    const { database, envelope } = pages.signIn
    await database.transaction((query) =>
      createConnectorStore(envelope).insert(query, {
        ...{ id: newId(), connectorId: 'simple-mail-transfer-protocol', type: 'Email' },
        ...{ config: smtpConfig(mails.port), syncProfile: false, metadata: {} },
      }),
    )
    await pages.signIn.refreshed()
    const bus = createPostgresBus({ database, logger: silentLogger })
    closers.push(() => bus.close())
    const config = { ...testRelayConfig, messages: localProviders }
    const relay = await startTestRelay({ database, bus, envelope, config })
    closers.push(() => relay.close())
  })
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
  })

  /** The code of the newest mail to somebody, when it has come. */
  const codeFor = (address: string, count = 1): Promise<string> =>
    until(() => {
      const mine = mails.received.filter(({ to }) => to.includes(address))
      const code = /\b\d{6}\b/.exec(mine.length >= count ? textsOf(mine.at(-1)!.raw).text : '')?.[0]
      if (code === undefined) throw new Error(`no mail for ${address} yet`)
      return code
    })
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

  describe.each([
    ['with scripts', true],
    ['without scripts', false],
  ])('%s', (_name, javaScriptEnabled) => {
    const somebody = () => `${newId()}@example.test`

    test('somebody new registers by a code, and signs in by another one', async () => {
      const address = somebody()
      const { page, context } = await pages.open({ javaScriptEnabled })
      await page.goto(pages.authorizationUrl())
      await button(page, 'Create an account').click()
      await page.getByLabel('Email address').fill(address)
      await button(page, 'Continue').click()
      await page.getByRole('heading', { name: 'Check your email' }).waitFor()
      await page.getByLabel('6-digit code').fill(await codeFor(address))
      await button(page, 'Continue').click()
      await page.getByLabel('Password').fill('four words make sense')
      // Twice makes one account, too.
      await button(page, 'Continue').dblclick()
      // The second form ends the navigation of the first.
      await expect.poll(() => atTheApplication(new URL(page.url()))).toBe(true)
      const query = 'SELECT FROM users WHERE lower(primary_email) = lower($1)'
      expect(await pages.signIn.sql(query, [address])).toHaveLength(1)

      await page.goto(pages.authorizationUrl({ prompts: ['login'] }))
      await page.getByLabel('Email address').fill(address)
      await button(page, 'Send me a code').click()
      await page.getByLabel('6-digit code').fill(await codeFor(address, 2))
      await page.keyboard.press('Enter')
      await page.waitForURL(atTheApplication)
      await context.close()
    })

    test('whoever has lost the password sets another one, and signs in with it', async () => {
      const person = await pages.signIn.createPerson({ email: somebody().toLowerCase() })
      const { page, context } = await pages.open({ javaScriptEnabled })
      await page.goto(pages.authorizationUrl())
      await button(page, 'Forgot your password?').click()
      await page.getByLabel('Email address').fill(person.email)
      await page.keyboard.press('Enter')
      await page.getByLabel('6-digit code').fill(await codeFor(person.email))
      await page.keyboard.press('Enter')
      await page.getByLabel('New password').fill('four words make sense')
      await button(page, 'Save password').click()
      await page.getByText('Your password was changed.').waitFor()
      await page.getByLabel('Email address').fill(person.email)
      await page.getByLabel('Password').fill('four words make sense')
      await button(page, 'Sign in').click()
      await page.waitForURL(atTheApplication)
      await context.close()
    })
  })

  test('the keyboard alone sets another password, after a mistake too', async () => {
    const person = await pages.signIn.createPerson({ email: `${newId().toLowerCase()}@example.test` })
    const { page, context } = await pages.open()
    const enter = async (typed: string) => {
      await page.keyboard.type(typed)
      await page.keyboard.press('Enter')
    }
    /** By Tab, as far as it takes. */
    const reach = async (name: string) => {
      for (let count = 0; count < 10; count++) {
        if ((await page.evaluate('document.activeElement.textContent')) === name) return
        await page.keyboard.press('Tab')
      }
      throw new Error(`${name} was not reached`)
    }
    const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
    await page.goto(pages.authorizationUrl())
    await reach('Forgot your password?')
    await page.keyboard.press('Enter')
    await heading('Reset your password')
    await enter('no address')
    // What went wrong has the focus; the link in it leads to the field.
    await page.getByRole('alert').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('ControlOrMeta+a')
    await enter(person.email)
    await heading('Check your email')
    await enter(await codeFor(person.email))
    await heading('Choose a new password')
    await enter('four words make sense')
    await heading('Sign in')
    await page.keyboard.type(person.email)
    await page.keyboard.press('Tab')
    await enter('four words make sense')
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test('the owner of an address learns by mail that somebody wanted to register it, the other one does not', async () => {
    const person = await pages.signIn.createPerson({ email: `${newId().toLowerCase()}@example.test` })
    const { page, context } = await pages.open()
    await page.goto(pages.authorizationUrl({ prompts: ['create'] }))
    await page.getByLabel('Email address').fill(person.email)
    await button(page, 'Continue').click()
    await page.getByRole('heading', { name: 'Check your email' }).waitFor()
    const mail = await until(() => {
      const found = mails.received.find(({ to }) => to.includes(person.email))
      if (!found) throw new Error('no mail yet')
      return textsOf(found.raw)
    })
    expect(mail.text).not.toMatch(/\b\d{6}\b/)
    expect(mail.text).toContain('account')
    await context.close()
  })
})
