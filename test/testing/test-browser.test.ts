import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthenticator, createTestBrowser, createTestTime, SignInFailed } from '../../testing/index.ts'
import { type CodeFlow, callback, createCodeFlow, type Person } from '../support/code-flow.ts'
import { createTestDatabase } from '../support/database.ts'
import { createDeviceFlow } from '../support/device-flow.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'
import { runProcess } from '../support/process.ts'
import { databaseUrl } from '../support/surrogate-process.ts'

/** The browser that integrators get, against an issuer as they have one. */

let issuer: TestIssuer
let flow: CodeFlow
let testDatabaseUrl: string
beforeAll(async () => {
  const database = await createTestDatabase()
  testDatabaseUrl = databaseUrl(database.connection)
  issuer = await startTestIssuer({ test: database, config: { host: 'localhost' } })
  flow = createCodeFlow(issuer)
  const passkeySignIn = { enabled: true, showPasskeyButton: true, allowAutofill: true }
  await issuer.api('PATCH', '/sign-in-exp', { passkeySignIn })
})
afterAll(() => issuer.close())

const shop = async (options: Parameters<CodeFlow['createClient']>[0] = {}) => {
  const { id, secret } = await flow.createClient(options)
  return { clientId: id, clientSecret: secret, redirectUri: callback, scope: 'openid offline_access' }
}
const open = () => createTestBrowser({ issuer: issuer.issuer })
const of = ({ username, password }: Person) => ({ user: username, password })
const failure = async (signingIn: Promise<unknown>): Promise<SignInFailed> => {
  const error = await signingIn.then(
    () => new Error('it did not fail'),
    (cause: unknown) => cause,
  )
  if (error instanceof SignInFailed) return error
  throw error
}

describe('a person signs in', () => {
  test('with a password, and at the next application without one', async () => {
    const [browser, person] = [open(), await flow.createPerson()]
    const { idToken, tokens } = await browser.signIn(await shop({ type: 'Traditional' }), of(person))
    expect(idToken).toMatchObject({ sub: person.id, amr: ['pwd'] })
    expect(await flow.userinfo(tokens.access_token)).toBe(200)
    const again = await browser.signIn(await shop(), { user: person.username })
    expect(again.idToken).toMatchObject({ sub: person.id })
    // Somebody else's browser knows nothing of it.
    expect((await failure(open().signIn(await shop(), { user: person.username }))).page?.title).toMatch(/^Sign in/)
    expect(JSON.stringify(browser.hops)).not.toContain(person.password)
  })

  test('with an authenticator app', async () => {
    const person = await flow.createPerson()
    await issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
    const { body } = await issuer.api('POST', `/users/${person.id}/mfa-verifications`, { type: 'Totp' })
    const application = await shop()
    const { idToken } = await open().signIn(application, { ...of(person), totpSecret: body.secret })
    expect(idToken?.['amr']).toEqual(expect.arrayContaining(['pwd', 'otp', 'mfa']))
    const { page } = await failure(open().signIn(application, of(person)))
    expect(page).toMatchObject({ status: 200, url: expect.stringContaining('/sign-in/') })
    expect(page?.text).toContain('authenticator app')
    await issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: [], policy: 'NoPrompt' } })
  })

  test('with a passkey that was made when it was offered', async () => {
    const [person, application] = [await flow.createPerson(), await shop()]
    const authenticator = createAuthenticator({ origin: issuer.baseUrl })
    await open().signIn(application, { ...of(person), authenticator })
    expect(authenticator.credentials).toHaveLength(1)
    const { idToken } = await open().signIn(application, { user: person.username, authenticator })
    expect(idToken).toMatchObject({ sub: person.id, acr: 'urn:surrogate:acr:phr' })
  })

  test('on a device', async () => {
    const device = createDeviceFlow(issuer, flow)
    const [client, person] = [await device.createClient(), await flow.createPerson()]
    const { body } = await device.begin(client)
    expect((await open().allowDevice(body.user_code, of(person))).title).toContain('Your device is signed in')
    expect(await device.poll(client, body.device_code)).toMatchObject({ status: 200 })
  })
})

describe('where it ends it says so', () => {
  test('at a wrong password, which is sent once', async () => {
    const [browser, person] = [open(), await flow.createPerson()]
    const { message, page } = await failure(browser.signIn(await shop(), { user: person.username, password: 'wrong' }))
    expect(message).toContain('The issuer shows the sign-in again')
    expect(page).toMatchObject({ status: 400, alerts: [expect.stringContaining('There is a problem')] })
    expect(browser.hops.filter(({ method }) => method === 'POST')).toHaveLength(1)
  })

  test('at a consent that is not given', async () => {
    const [person, application] = [await flow.createPerson(), await shop({ isThirdParty: true })]
    const { page } = await failure(open().signIn(application, { ...of(person), consents: false }))
    expect(page?.title).toContain('Allow access')
    expect((await open().signIn(application, of(person))).idToken).toMatchObject({ sub: person.id })
  })

  test('at a code of a device that is none', async () => {
    const { page } = await failure(open().allowDevice('BBBB-BBBB', of(await flow.createPerson())))
    expect(page?.text).toContain('This code is not right')
  })
})

test('time passes for sessions and refresh tokens', async () => {
  const time = createTestTime({ databaseUrl: testDatabaseUrl })
  try {
    const [browser, person, application] = [open(), await flow.createPerson(), await shop()]
    const { tokens, idToken } = await browser.signIn(application, of(person))
    const refresh = (token: string) => flow.refresh({ id: application.clientId }, token)
    await time.expireSessions(person.id)
    expect((await failure(browser.signIn(application, { user: person.username }))).page?.title).toMatch(/^Sign in/)
    const refreshed = await refresh(tokens.refresh_token!)
    expect(refreshed.status).toBe(200)
    await time.expireRefreshTokens(String(idToken?.['sid']))
    expect(await refresh(refreshed.body.refresh_token)).toMatchObject({
      status: 400,
      body: { reason: 'refresh_token_expired' },
    })

    const later = await browser.signIn(application, of(person))
    await time.pass(7_200)
    expect(await flow.userinfo(later.tokens.access_token)).toBe(401)
    await browser.signIn(application, { user: person.username })
  } finally {
    await time.close()
  }
})

test('the tests of docs/testing.md run, and pass', async () => {
  const page = await readFile(fileURLToPath(new URL('../../docs/testing.md', import.meta.url)), 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  const entry = pathToFileURL(fileURLToPath(new URL('../../testing/index.ts', import.meta.url))).href
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-testing-'))
  try {
    await writeFile(join(folder, 'shop.test.mjs'), code.replace('surrogate/testing', entry))
    const [person, application] = [await flow.createPerson(), await shop()]
    const { code: exitCode, output } = await runProcess(process.execPath, ['--test'], {
      cwd: folder,
      env: {
        ISSUER: issuer.issuer,
        CLIENT_ID: application.clientId,
        REDIRECT_URI: callback,
        TEST_USER: person.username,
        TEST_PASSWORD: person.password,
        DATABASE_URL: testDatabaseUrl,
      },
    })
    expect(output).toMatch(/pass 2\b/)
    expect(exitCode).toBe(0)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
