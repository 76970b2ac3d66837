import { expect, onTestFinished, test } from 'vitest'
import { type ConsoleRoleName, consoleClientId, consoleRoles } from '../../../issuer/base/console-roles.ts'
import { inviteFirstOwner, inviteToConsole } from '../../../issuer/console/invitations.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { createBrowser } from '../../support/browser.ts'
import { consoleCookie, startTestConsole, type TestConsole } from '../../support/console.ts'

let home: TestConsole

const start = async (instances = 1) => {
  home = await startTestConsole({ instances })
  onTestFinished(home.close)
  return home
}

const tokenOf = (link: string | undefined) => /#([\w-]{43})$/.exec(link ?? '')?.[1] ?? ''
const firstOwner = async () => tokenOf(await inviteFirstOwner(home.issuer.database.query, home.issuer.baseUrl))
const invite = async (role: ConsoleRoleName) =>
  tokenOf(await inviteToConsole(home.issuer.database.query, { role, consoleUrl: home.issuer.baseUrl }))

const browser = () => createBrowser(home.issuer.baseUrl)
const ada = { name: 'Ada', primaryEmail: 'ada@owner.test' }
const password = 'a violet staircase 7'
const setUp = (who: ReturnType<typeof browser>, body: object, instance = 0) =>
  home.call(who, 'POST', '/setup', body, { instance })
const notValid = { status: 404, body: { code: 'console.invitation_not_valid' } }
const owners = () =>
  home.issuer.sql<{ name: string }>(
    'SELECT u.name FROM user_roles r JOIN users u ON u.id = r.user_id WHERE role_id = $1',
    [consoleRoles.owner.id],
  )

test('the link of a first start makes an owner with a password, who is signed in, and can do so again', async () => {
  await start()
  const link = await inviteFirstOwner(home.issuer.database.query, home.issuer.baseUrl)
  expect(link).toMatch(new RegExp(`^${home.issuer.baseUrl}/console/setup#[\\w-]{43}$`))
  const token = tokenOf(link)
  const who = browser()
  expect((await who.get(link!.split('#')[0]!)).status).toBe(200)
  expect(await home.call(who, 'POST', '/setup/check', { token })).toMatchObject({
    status: 200,
    body: { role: 'owner', rpId: 'localhost', expiresAt: expect.any(Number) },
  })
  expect(await setUp(who, { token, ...ada, password })).toMatchObject({ status: 201, body: {} })
  expect((await home.call(who, 'GET', '/session')).body).toMatchObject({
    user: { name: 'Ada', primaryEmail: 'ada@owner.test' },
    roles: ['owner'],
    scopes: ['all'],
  })
  expect((await home.call(who, 'POST', '/api/users', { username: 'first' })).status).toBe(200)

  const later = browser()
  const page = await later.get(`${home.issuer.baseUrl}/console/sign-in`)
  await later.submit(page, { identifier: ada.primaryEmail, password, choice: 'sign_in' })
  expect(later.cookies.has(consoleCookie)).toBe(true)
  // There is one now.
  expect(await inviteFirstOwner(home.issuer.database.query, home.issuer.baseUrl)).toBeUndefined()
})

test('with a passkey, which signs in from then on, although signing in by passkey was off', async () => {
  await start()
  const token = await firstOwner()
  const who = browser()
  const authenticator = createAuthenticator({ origin: home.issuer.baseUrl })
  const options = await home.call(who, 'POST', '/setup/passkey', { token, ...ada })
  expect(options).toMatchObject({
    status: 200,
    body: {
      rp: { id: 'localhost' },
      user: { name: 'ada@owner.test', displayName: 'Ada' },
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    },
  })
  const made = await setUp(who, { token, ...ada, passkey: authenticator.create(options.body) })
  expect(made).toMatchObject({ status: 201, body: {} })
  const { body } = await home.call(who, 'GET', '/session')
  expect(body.roles).toEqual(['owner'])
  expect((await home.issuer.api('GET', '/sign-in-exp')).body.passkeySignIn.enabled).toBe(true)
  const [found] = await home.issuer.sql<{ amr: string[]; acr: string }>(
    'SELECT amr, acr FROM sessions WHERE user_id = $1',
    [body.user.id],
  )
  expect(found).toMatchObject({ amr: expect.arrayContaining(['pop', 'user']), acr: 'urn:surrogate:acr:phr' })

  const page = await browser().get(`${home.issuer.baseUrl}/console/sign-in`)
  expect(page.text).toContain('data-passkey="get"')
})

test('an answer to another challenge, of another page, or a second time makes nobody, and spends nothing', async () => {
  await start()
  const token = await firstOwner()
  const who = browser()
  const ask = async () => (await home.call(who, 'POST', '/setup/passkey', { token, ...ada })).body
  const failed = { status: 400, body: { code: 'session.mfa.webauthn_verification_failed' } }
  const earlier = createAuthenticator({ origin: home.issuer.baseUrl }).create(await ask())
  const options = await ask()
  expect(await setUp(who, { token, ...ada, passkey: earlier })).toMatchObject(failed)
  // The challenge is used up by the first answer.
  const right = createAuthenticator({ origin: home.issuer.baseUrl }).create(options)
  expect(await setUp(who, { token, ...ada, passkey: right })).toMatchObject(failed)
  const elsewhere = createAuthenticator({ origin: 'https://evil.example' }).create(await ask())
  expect(await setUp(who, { token, ...ada, passkey: elsewhere })).toMatchObject(failed)
  expect(await owners()).toEqual([])
  const good = createAuthenticator({ origin: home.issuer.baseUrl }).create(await ask())
  expect((await setUp(who, { token, ...ada, passkey: good })).status).toBe(201)
})

test('a link that was used, has expired or is unknown is good for nothing', async () => {
  await start()
  const [used, expired] = [await invite('owner'), await invite('owner')]
  expect((await setUp(browser(), { token: used, ...ada, password })).status).toBe(201)
  await home.issuer.sql(`UPDATE console_invitations SET expires_at = now() - interval '1 second' WHERE NOT is_first`)
  for (const token of [used, expired, 'x'.repeat(43)]) {
    const who = browser()
    const eve = { name: 'Eve', primaryEmail: 'eve@evil.test' }
    expect(await home.call(who, 'POST', '/setup/check', { token })).toMatchObject(notValid)
    expect(await home.call(who, 'POST', '/setup/passkey', { token, ...eve })).toMatchObject(notValid)
    expect(await setUp(who, { token, ...eve, password })).toMatchObject(notValid)
    expect(who.cookies.size).toBe(0)
  }
  expect(await owners()).toEqual([{ name: 'Ada' }])
})

test('of many who use one link at once, on two instances, one becomes an owner', async () => {
  await start(2)
  const token = await firstOwner()
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, index) =>
      setUp(browser(), { token, name: `P${index}`, primaryEmail: `p${index}@owner.test`, password }, index % 2),
    ),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 404, 404, 404, 404, 404])
  expect(await owners()).toHaveLength(1)
  expect(await home.issuer.sql(`SELECT id FROM users WHERE primary_email LIKE '%@owner.test'`)).toHaveLength(1)
})

test('of two links for the first owner, used at once, one makes an owner; the other is good for nothing from then on', async () => {
  await start(2)
  const tokens = [await firstOwner(), await firstOwner()]
  const answers = await Promise.all(
    tokens.map((token, index) =>
      setUp(browser(), { token, name: `P${index}`, primaryEmail: `p${index}@owner.test`, password }, index),
    ),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 404])
  expect(await owners()).toHaveLength(1)
  for (const token of tokens)
    expect(await home.call(browser(), 'POST', '/setup/check', { token })).toMatchObject(notValid)
})

test('an invitation makes a member of its role, also when there are owners', async () => {
  await start()
  await home.createMember('owner')
  const token = await invite('auditor')
  const who = browser()
  expect((await home.call(who, 'POST', '/setup/check', { token })).body.role).toBe('auditor')
  expect((await setUp(who, { token, ...ada, password })).status).toBe(201)
  expect((await home.call(who, 'GET', '/session')).body.roles).toEqual(['auditor'])
  expect((await home.call(who, 'POST', '/api/users', { username: 'forged' })).status).toBe(403)
})

test('what is refused spends nothing: a bad password, an address that somebody has, nothing to sign in with', async () => {
  await start()
  const token = await firstOwner()
  await home.issuer.api('POST', '/users', { primaryEmail: 'taken@owner.test' })
  const who = browser()
  for (const [body, code] of [
    [{ ...ada, password: 'short' }, 'password.rejected'],
    [{ ...ada, primaryEmail: 'taken@owner.test', password }, 'user.email_already_in_use'],
    [{ ...ada }, 'guard.invalid_input'],
    [{ ...ada, name: ' ', password }, 'guard.invalid_input'],
    [{ ...ada, primaryEmail: 'nowhere', password }, 'guard.invalid_input'],
  ] as const)
    expect([body, (await setUp(who, { token, ...body })).body.code]).toEqual([body, code])
  expect((await setUp(who, { token, ...ada, password })).status).toBe(201)
})

test('recovery codes are shown where they are of use: with a password, a passkey and both factors on', async () => {
  await start()
  await home.issuer.api('PATCH', '/sign-in-exp', {
    mfa: { factors: ['WebAuthn', 'BackupCode'], policy: 'PromptAtSignInAndSignUp' },
  })
  const token = await firstOwner()
  const who = browser()
  const options = await home.call(who, 'POST', '/setup/passkey', { token, ...ada })
  const passkey = createAuthenticator({ origin: home.issuer.baseUrl }).create(options.body)
  const { status, body } = await setUp(who, { token, ...ada, password, passkey })
  expect([status, body.recoveryCodes]).toEqual([201, expect.any(Array)])
  expect(body.recoveryCodes).toHaveLength(10)
})

test('the trail tells who became what, without the token; the database and the log do not have it', async () => {
  await start()
  const token = await firstOwner()
  const who = browser()
  await setUp(who, { token, ...ada, password })
  const { id } = (await home.call(who, 'GET', '/session')).body.user
  const rows = await home.issuer.sql<{ text: string }>(
    `SELECT to_jsonb(l)::text AS text FROM logs l WHERE key = 'Console.setUp'`,
  )
  expect(rows).toHaveLength(1)
  expect(JSON.parse(rows[0]!.text)).toMatchObject({
    user_id: id,
    application_id: consoleClientId,
    payload: { role: 'owner', fields: ['name', 'primaryEmail', 'password'] },
  })
  const stored = await home.issuer.sql<{ text: string }>(
    `SELECT coalesce(string_agg(to_jsonb(i)::text, ''), '') AS text FROM console_invitations i`,
  )
  for (const text of [rows[0]!.text, stored[0]!.text, home.issuer.logged()]) {
    expect(text).not.toContain(token)
    expect(text).not.toContain(password)
  }
})

test('another site cannot use a link, although it holds no cookie', async () => {
  await start()
  const token = await firstOwner()
  const headers = { 'sec-fetch-site': 'cross-site' }
  for (const path of ['/setup/check', '/setup/passkey', '/setup'])
    expect(await home.call(browser(), 'POST', path, { token, ...ada, password }, { headers })).toMatchObject({
      status: 403,
      body: { code: 'console.cross_site' },
    })
  expect(await owners()).toEqual([])
})
