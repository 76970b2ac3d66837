import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type AuthenticationOptions,
  authenticationCredential,
  authenticationOptions,
  newUserHandle,
  type RegistrationOptions,
  type RelyingParty,
  registrationCredential,
  registrationOptions,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../issuer/directory/users/factors/index.ts'
import { randomToken } from '../../platform/ids.ts'
import { chromium, startChromium } from '../support/chromium.ts'

/** Options and answers of passkeys as Chromium reads and writes them, with an authenticator of its own. */

describe.skipIf(!chromium)('passkeys, in Chromium', () => {
  let browser: Browser
  let server: Server
  let relyingParty: RelyingParty
  beforeAll(async () => {
    server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<title>x</title>'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    relyingParty = relyingPartyOf(`http://localhost:${(server.address() as AddressInfo).port}`)
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
  })

  let page: Page
  beforeEach(async () => {
    const context = await browser.newContext()
    page = await context.newPage()
    await page.goto(relyingParty.origins[0]!)
    const devtools = await context.newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        ctap2Version: 'ctap2_1',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    return () => context.close()
  })

  // What runs in the page knows the browser's own functions only.
  const create = (options: RegistrationOptions) =>
    page.evaluate(`(async (options) => {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
      return (await navigator.credentials.create({ publicKey })).toJSON()
    })(${JSON.stringify(options)})`)
  const get = (options: AuthenticationOptions) =>
    page.evaluate(`(async (options) => {
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
      return (await navigator.credentials.get({ publicKey })).toJSON()
    })(${JSON.stringify(options)})`)

  test('are made, asked for by name and without, and made once on a device', async () => {
    const owner = { handle: newUserHandle(), name: 'ada@example.test', displayName: 'Ada' }
    const challenge = randomToken()
    const made = await create(registrationOptions(relyingParty, challenge, owner, []))
    const { verified, refused } = verifyRegistration(registrationCredential.parse(made), { challenge, relyingParty })
    expect(refused).toBeUndefined()
    expect(verified).toMatchObject({ algorithm: -7, transports: ['internal'], isBackupEligible: false })
    const stored = { ...verified!, userHandle: owner.handle }

    let signCount = stored.signCount
    for (const allowed of [[], [stored]]) {
      const asked = randomToken()
      const answer = await get(authenticationOptions(relyingParty, asked, allowed))
      const expected = { challenge: asked, relyingParty }
      const credential = authenticationCredential.parse(answer)
      const outcome = verifyAuthentication(credential, expected, { ...stored, signCount })
      expect(outcome.verified).toEqual({
        signCount: expect.any(Number),
        isBackedUp: false,
        isCounterBehind: false,
      })
      // The same answer again has a counter that another has passed.
      signCount = outcome.verified!.signCount
      expect(verifyAuthentication(credential, expected, { ...stored, signCount })).toEqual({
        refused: 'counter_not_increased',
      })
    }

    await expect(create(registrationOptions(relyingParty, challenge, owner, [stored]))).rejects.toThrow(
      'InvalidStateError',
    )
  })
})
