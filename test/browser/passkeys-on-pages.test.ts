import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import {
  createFactors,
  registrationCredential,
  registrationOptions,
  relyingPartyOf,
  verifyRegistration,
} from '../../issuer/directory/users/factors/index.ts'
import { html, render } from '../../issuer/pages/html.ts'
import { passkeyForm } from '../../issuer/pages/index.ts'
import { chromium } from '../support/chromium.ts'
import { atTheApplication, type PagesInChromium, startPagesInChromium } from '../support/pages-in-chromium.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { experienceWith, type TestPerson } from '../support/sign-in.ts'

/** Passkeys, in Chromium with an authenticator that it plays. */

describe.skipIf(!chromium)('in Chromium', () => {
  let pages: PagesInChromium
  beforeAll(async () => {
    pages = await startPagesInChromium()
  })
  afterAll(() => pages?.close())
  beforeEach(() => {
    pages.signIn.settings = experienceWith({ passkeySignIn: { enabled: true, allowAutofill: false } })
  })

  /** The person has a passkey, and the browser of this page holds it. */
  const giveTo = async (page: Page, person: TestPerson, { isPresent = true } = {}) => {
    const { database, envelope } = pages.signIn
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [credentialId, userHandle] = [randomBytes(16), randomBytes(32)]
    const factors = createFactors({ envelope, hmac: await createHmacs(database, envelope) })
    await database.transaction((trx) =>
      factors.bindPasskey(trx, {
        ...{ userId: person.id, userHandle },
        credential: {
          ...{
            credentialId,
            publicKey: publicKey.export({ type: 'spki', format: 'der' }),
            algorithm: -7,
            signCount: 0,
          },
          ...{ transports: ['internal'], isBackupEligible: false, isBackedUp: false },
        },
      }),
    )
    const { session, authenticatorId } = await attachAuthenticator(page)
    if (!isPresent) return
    await session.send('WebAuthn.addCredential', {
      authenticatorId,
      credential: {
        ...{ credentialId: credentialId.toString('base64'), isResidentCredential: true, rpId: 'localhost' },
        privateKey: privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
        ...{ userHandle: userHandle.toString('base64'), signCount: 0 },
      },
    })
  }

  test('a passkey signs in by itself, and the person stays signed in as they asked', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await giveTo(page, person)
    await page.goto(pages.authorizationUrl())
    await page.getByLabel('Keep me signed in').check()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL(atTheApplication)
    const [session] = await pages.signIn.sql('SELECT amr, acr FROM sessions WHERE user_id = $1', [person.id])
    expect(session).toEqual({ amr: ['pop', 'user', 'mfa'], acr: 'urn:surrogate:acr:phr' })
    const cookie = (await context.cookies()).find(({ name }) => name === 'surrogate_session')
    expect(cookie!.expires).toBeGreaterThan(Date.now() / 1000 + 86_400)
    await context.close()
  })

  test('the field offers passkeys, and one that is chosen there signs in', async () => {
    pages.signIn.settings = experienceWith({ passkeySignIn: { enabled: true, showPasskeyButton: false } })
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await giveTo(page, person)
    // The authenticator answers at once what the person would choose in the list under the field.
    await page.goto(pages.authorizationUrl())
    await page.waitForURL(atTheApplication)
    expect(await pages.signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)
    await context.close()
  })

  test('a browser without a passkey says so, and the password still signs in', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await giveTo(page, person, { isPresent: false })
    await page.goto(pages.authorizationUrl())
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('No passkey was accepted.').waitFor()
    await page.getByLabel('Email').fill(person.username)
    await page.getByLabel('Password', { exact: true }).fill(person.password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test('a passkey that was removed is refused, with a page that leads on', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await giveTo(page, person)
    await pages.signIn.sql('DELETE FROM passkeys WHERE user_id = $1', [person.id])
    await page.goto(pages.authorizationUrl())
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').getByText('No passkey was accepted.').waitFor()
    expect(await page.getByRole('button', { name: 'Sign in with a passkey' }).isVisible()).toBe(true)
    await context.close()
  })

  test('the same script makes a passkey, and hands over what the issuer verifies', async () => {
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    const relyingParty = relyingPartyOf(pages.signIn.url)
    const challenge = randomBytes(32).toString('base64url')
    const owner = { handle: randomBytes(32), name: 'ada', displayName: 'Ada' }
    const form = passkeyForm({
      ...{ action: '/made', csrf: 'csrf-value', kind: 'create', proofId: 'p1' },
      options: registrationOptions(relyingParty, challenge, owner, []),
      ...{ label: html`Add a passkey`, failed: html`None` },
    })
    await page.route('**/enrol', (route) => route.fulfill({ contentType: 'text/html', body: render(form) }))
    await page.route('**/made', (route) => route.fulfill({ contentType: 'text/html', body: 'made' }))
    await page.goto(`${pages.signIn.url}/enrol`)
    const posted = page.waitForRequest((request) => request.method() === 'POST')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const sent = new URLSearchParams((await posted).postData() ?? '')
    expect(Object.fromEntries(sent)).toMatchObject({ csrf: 'csrf-value', choice: 'passkey', proofId: 'p1' })
    const credential = registrationCredential.parse(JSON.parse(sent.get('credential')!))
    expect(verifyRegistration(credential, { challenge, relyingParty })).toHaveProperty('verified')
    await context.close()
  })

  test('without scripts nothing of it shows, and everything else works', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open({ javaScriptEnabled: false })
    await page.goto(pages.authorizationUrl())
    expect(await page.getByRole('button', { name: 'Sign in with a passkey' }).count()).toBe(0)
    expect(await page.getByText('No passkey was accepted.').isVisible()).toBe(false)
    await page.getByLabel('Email').fill(person.username)
    await page.getByLabel('Password').fill(person.password)
    await page.keyboard.press('Enter')
    await page.waitForURL(atTheApplication)
    await context.close()
  })
})
