import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createIdentityProviderStore } from '../../../issuer/connectors/providers/identity-provider-store.ts'
import { Secret } from '../../../platform/secret.ts'
import type { Visit } from '../../support/browser.ts'
import { loopback } from '../../support/federation.ts'
import { easyCaptcha } from '../../support/proof-of-work.ts'
import { answerOf, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'
import { startWebsite } from '../../support/website.ts'

/** Turns to have a password hashed: as many as there are threads, for everybody. */

const providersAtStart = { socialSignInConnectorTargets: ['slow'] }

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn()
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const idOf = ({ url }: Visit) => /\/sign-in\/(\w+)/.exec(url)![1]

test('a form that is sent many times, whose attempts wait for each other, keeps nobody else from signing in', async () => {
  const [ada, eve] = [await signIn.createPerson(), await signIn.createPerson()]
  const [browser, other] = [signIn.browser(), signIn.browser()]
  const page = await signIn.authorize(browser, client)
  const busy = `UPDATE interactions SET state = state || jsonb_build_object('busyUntil', $2::float8) WHERE id = $1`
  await signIn.sql(busy, [idOf(page), Date.now() / 1_000 + 3_600])
  let answered = 0
  // More than there are turns, on any machine.
  const many = Array.from({ length: 20 }, async () => {
    const answer = await browser.submit(page, { identifier: eve.email, password: eve.password })
    answered++
    return answer
  })
  const mine = await other.submit(await signIn.authorize(other, client), {
    identifier: ada.email,
    password: ada.password,
  })
  expect(answerOf(mine)).toMatchObject({ code: expect.any(String) })
  expect(answered).toBe(0)
  await signIn.sql(busy, [idOf(page), 0])
  const codes = (await Promise.all(many)).map((answer) => answerOf(answer)['code'])
  expect(codes).toEqual(Array(20).fill(codes[0] ?? 'a code'))
})

test('whoever waits for somebody outside to test them for a machine keeps nobody else from signing in', async () => {
  const gate = Promise.withResolvers<void>()
  let asked = 0
  const cloudflare = await startWebsite(async () => {
    asked++
    await gate.promise
    return { body: JSON.stringify({ success: false, 'error-codes': ['invalid-input-response'] }) }
  })
  const turnstile = {
    ...{ siteKey: 'site', secretKey: new Secret('secret'), failOpen: false, url: `${cloudflare.url}/siteverify` },
    targets: { allowedNetworks: loopback, allowHttp: true },
  }
  const tested = await startTestSignIn({ captcha: { ...easyCaptcha, turnstile } })
  onTestFinished(async () => {
    gate.resolve()
    await tested.close()
    await cloudflare.close()
  })
  const shop = await tested.createClient()
  const ada = await tested.createPerson()
  let answered = 0
  const many = Array.from({ length: 12 }, async () => {
    const browser = tested.browser()
    const page = await tested.authorize(browser, shop)
    const { status } = await browser.submit(page, { identifier: 'eve', password: 'anything', captcha: 'a token' })
    answered++
    return status
  })
  // More than there are turns, on any machine, and before any of them gives up.
  await expect.poll(() => asked - answered).toBeGreaterThan(8)
  expect(answerOf(await tested.signIn(tested.browser(), shop, ada))).toMatchObject({ code: expect.any(String) })
  gate.resolve()
  expect(new Set(await Promise.all(many))).not.toContain(200)
})

test('whoever is sent to a provider that does not answer keeps nobody else from signing in', async () => {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const provider = await startWebsite(async () => {
    asked.resolve()
    await gate.promise
    return { status: 503 }
  })
  const tested = await startTestSignIn({ settings: providersAtStart, allowedNetworks: loopback })
  onTestFinished(async () => {
    gate.resolve()
    await tested.close()
    await provider.close()
  })
  const connectorId = 'slow'
  await createIdentityProviderStore(tested.envelope).insert(tested.database.query, {
    ...{ id: connectorId, kind: 'social', provider: 'oidc', target: 'slow', name: null, domains: [], look: {} },
    ...{ config: { issuer: provider.url, clientId: 'us', clientSecret: 'secret' }, syncProfile: false },
  })
  const shop = await tested.createClient()
  const ada = await tested.createPerson()
  let answered = 0
  // More than there are turns, on any machine.
  const waiting = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const browser = tested.browser()
      return { browser, page: await tested.authorize(browser, shop) }
    }),
  )
  const many = waiting.map(async ({ browser, page }) => {
    const entered = { identifier: 'eve', password: 'anything', choice: `provider:${connectorId}` }
    const { status } = await browser.submit(page, entered, { with: 'choice' })
    answered++
    return status
  })
  await asked.promise
  expect(answerOf(await tested.signIn(tested.browser(), shop, ada))).toMatchObject({ code: expect.any(String) })
  expect(answered).toBe(0)
  gate.resolve()
  await Promise.all(many)
})
