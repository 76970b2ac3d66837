import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBrowser, headingOf } from '../../support/browser.ts'
import { parametersOf } from '../../support/code-flow.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../support/federated.ts'
import type { FormValues } from '../../support/issuer.ts'

/** Signing in by identity providers, through the pages, with a real provider behind them. */

let federated: TestFederatedSignIn
const defaults = {
  signInMode: 'SignInAndRegister',
  signUp: { identifiers: [], password: false, verify: false },
  socialSignIn: { automaticAccountLinking: false, skipRequiredIdentifiers: false },
  socialSignInConnectorTargets: ['acme'],
  mfa: { factors: [], policy: 'NoPrompt' },
} as const
let count = 0
beforeAll(async () => {
  federated = await startFederatedSignIn()
})
afterAll(() => federated.close())
beforeEach(async () => {
  await federated.configure(defaults as never)
  federated.provider.be()
  count++
  federated.provider.person = {
    sub: `subject-${count}`,
    email: `ada${count}@example.com`,
    email_verified: true,
    name: 'Ada Lovelace',
    picture: 'https://pictures.example/ada.png',
  }
})

const browser = () => createBrowser(federated.issuer.baseUrl)
const eventsSince = async (seq: string) => {
  const rows = await federated.issuer.sql<{ payload: Buffer }>(
    'SELECT payload FROM outbox WHERE seq > $1::bigint ORDER BY seq',
    [seq],
  )
  return rows.map(({ payload }) => JSON.parse(payload.toString()))
}
const now = async () =>
  (await federated.issuer.sql<{ seq: string }>('SELECT coalesce(max(seq), 0)::text AS seq FROM outbox'))[0]!.seq

describe('somebody new', () => {
  test('becomes a user with name, picture, address and identity, and one correlated pair of events', async () => {
    const before = await now()
    const visit = await federated.signIn(browser())
    const claims = await federated.claimsOf(visit)
    expect(claims).toMatchObject({ amr: ['fed'], acr: 'urn:surrogate:acr:basic' })
    const { body: user } = await federated.issuer.api('GET', `/users/${claims.sub}`)
    expect(user).toMatchObject({
      primaryEmail: `ada${count}@example.com`,
      name: 'Ada Lovelace',
      avatar: 'https://pictures.example/ada.png',
      hasPassword: false,
      identities: { acme: { userId: `subject-${count}`, details: { email: `ada${count}@example.com` } } },
    })
    const events = await eventsSince(before)
    expect(events.map(({ event }) => event)).toEqual(['User.Created', 'PostRegister'])
    expect(events[0].data.identities).toMatchObject({ acme: { userId: `subject-${count}` } })
    expect(new Set(events.map(({ correlationId }) => correlationId)).size).toBe(1)
  })

  test('comes back as the same user, by the identity alone, whatever the address is by then', async () => {
    const first = await federated.claimsOf(await federated.signIn(browser()))
    federated.provider.person = { ...federated.provider.person, email: 'moved@example.com', name: 'Another Name' }
    const before = await now()
    const again = await federated.claimsOf(await federated.signIn(browser()))
    expect(again.sub).toBe(first.sub)
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual(['PostSignIn'])
    const { body: user } = await federated.issuer.api('GET', `/users/${first.sub}`)
    expect(user).toMatchObject({ primaryEmail: `ada${count}@example.com`, name: 'Ada Lovelace' })
  })

  test('is back at the application in one redirect, and so is whose browser posts the answer to it', async () => {
    const answerTo = async (parameters: FormValues = {}) => {
      const visitor = browser()
      const sent = await federated.press(visitor, await federated.ask(visitor, parameters))
      return { visitor, back: await federated.provider.signIn(sent) }
    }
    const before = await now()
    const { visitor, back } = await answerTo()
    const first = await visitor.send(back.href)
    expect({ status: first.status, referrer: first.headers.get('referrer-policy') }).toEqual({
      status: 303,
      referrer: 'no-referrer',
    })
    expect(await federated.claimsOf(first)).toHaveProperty('sub')
    // Neither its code nor its state is told to anybody else.
    const [event] = await eventsSince(before)
    expect(event).toMatchObject({ method: 'GET', path: `/callback/${federated.social}` })
    for (const name of ['code', 'state']) expect(JSON.stringify(event)).not.toContain(back.searchParams.get(name)!)
    // It counts once: with the same answer again there is nothing left to do.
    const again = await visitor.get(back.href)
    expect({ status: again.status, location: again.location }).toEqual({ status: 200, location: undefined })

    const posted = await answerTo({ response_mode: 'form_post', ui_locales: 'de' })
    const page = await posted.visitor.send(posted.back.href)
    expect(page.status).toBe(200)
    expect(page.text).toContain('<html lang="de"')
    expect(page.forms[0]!.names).toEqual(expect.arrayContaining(['code', 'iss']))
  })

  test('is asked for what the settings want of accounts, but for a password', async () => {
    await federated.configure({ signUp: { identifiers: ['username'], password: true, verify: false } })
    const visitor = browser()
    const page = await federated.signIn(visitor)
    expect(page.forms[0]!.names).toContain('username')
    expect(page.text).not.toContain('type="password"')
    const done = await visitor.submit(page, { username: `ada_${count}`, choice: 'details' })
    const { sub } = await federated.claimsOf(done)
    const { body } = await federated.issuer.api('GET', `/users/${sub}`)
    expect(body).toMatchObject({ username: `ada_${count}`, primaryEmail: `ada${count}@example.com` })
  })

  test('is asked for nothing where the settings skip it', async () => {
    await federated.configure({
      signUp: { identifiers: ['username'], password: true, verify: false },
      socialSignIn: { automaticAccountLinking: false, skipRequiredIdentifiers: true },
    })
    expect(await federated.claimsOf(await federated.signIn(browser()))).toHaveProperty('sub')
  })

  test('is told that there is no account where nobody may register, and can sign in in another way', async () => {
    await federated.configure({ signInMode: 'SignIn' })
    const users = (await federated.users()).length
    const page = await federated.signIn(browser())
    expect(page.text).toContain('No account here belongs to your account at')
    expect(page.forms[0]!.names).toContain('password')
    expect(await federated.users()).toHaveLength(users)
  })

  test('may not register with an address that the operator refuses', async () => {
    await federated.configure({ emailBlocklistPolicy: { customBlocklist: ['@example.com'] } as never })
    const page = await federated.signIn(browser())
    await federated.configure({ emailBlocklistPolicy: { customBlocklist: [] } as never })
    expect(page.text).toContain('Accounts cannot be created here with the email address')
  })

  test('joins the organizations of the address', async () => {
    const { body: organization } = await federated.issuer.api('POST', '/organizations', { name: 'Example' })
    await federated.issuer.api('POST', `/organizations/${organization.id}/jit/email-domains`, {
      emailDomain: 'example.com',
    })
    const { sub } = await federated.claimsOf(await federated.signIn(browser()))
    const { body: members } = await federated.issuer.api('GET', `/organizations/${organization.id}/users`)
    await federated.issuer.api('DELETE', `/organizations/${organization.id}`)
    expect(members.map(({ id }: { id: string }) => id)).toEqual([sub])
  })

  test('of two browsers with the same new identity at once there is one user', async () => {
    const pair = [browser(), browser()]
    const urls = await Promise.all(pair.map(async (one) => federated.press(one, await federated.ask(one))))
    const before = (await federated.users()).length
    const visits = await Promise.all(pair.map((one, index) => federated.comeBack(one, urls[index]!)))
    expect(await federated.users()).toHaveLength(before + 1)
    const ends = visits.filter(({ location }) => location !== undefined)
    expect(ends.length).toBeGreaterThan(0)
    // Whoever was overtaken is somebody known by now.
    for (const one of pair) {
      const visit = await federated.signIn(one, { parameters: { prompt: 'login' } })
      expect(await federated.claimsOf(visit)).toHaveProperty('sub')
    }
    expect(await federated.users()).toHaveLength(before + 1)
  })
})

describe('somebody who has an account', () => {
  test('proves it once in the same sign-in, and the identity is linked when that ends', async () => {
    const person = await federated.personWith(`ada${count}@example.com`)
    const visitor = browser()
    const before = await now()
    const page = await federated.signIn(visitor)
    expect(page.text).toContain('There is an account with')
    expect(page.forms[0]!.fields['identifier']).toBe(person.email)
    expect(await federated.identitiesOf(person.id)).toEqual([])
    const visit = await visitor.submit(page, { password: person.password, choice: 'sign_in' })
    expect(await federated.claimsOf(visit)).toMatchObject({ sub: person.id, amr: ['pwd'] })
    expect(await federated.identitiesOf(person.id)).toEqual([{ target: 'acme', subject: `subject-${count}` }])
    const events = await eventsSince(before)
    expect(events.map(({ event }) => event)).toEqual(['PostSignIn', 'User.Data.Updated'])
    expect(events[1].data.identities).toHaveProperty('acme')
    // From then on it opens the account.
    expect(await federated.claimsOf(await federated.signIn(browser()))).toMatchObject({ sub: person.id, amr: ['fed'] })
  })

  test('another person who signs in at that page gets nothing of it', async () => {
    const owner = await federated.personWith(`ada${count}@example.com`)
    const other = await federated.createPerson()
    const visitor = browser()
    const page = await federated.signIn(visitor)
    const visit = await visitor.submit(page, {
      ...{ identifier: other.username, password: other.password, choice: 'sign_in' },
    })
    expect((await federated.claimsOf(visit)).sub).toBe(other.id)
    expect(await federated.identitiesOf(other.id)).toEqual([])
    expect(await federated.identitiesOf(owner.id)).toEqual([])
  })

  test('a wrong password links nothing', async () => {
    const person = await federated.personWith(`ada${count}@example.com`)
    const visitor = browser()
    const page = await federated.signIn(visitor)
    const again = await visitor.submit(page, { password: 'wrong', choice: 'sign_in' })
    expect(again.status).toBe(400)
    expect(await federated.identitiesOf(person.id)).toEqual([])
  })

  test('is linked by the address where the operator says so, and that is one event more', async () => {
    await federated.configure({ socialSignIn: { automaticAccountLinking: true, skipRequiredIdentifiers: false } })
    const person = await federated.personWith(`ada${count}@example.com`)
    const before = await now()
    expect(await federated.claimsOf(await federated.signIn(browser()))).toMatchObject({ sub: person.id, amr: ['fed'] })
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual(['PostSignIn', 'User.Data.Updated'])
    expect(await federated.identitiesOf(person.id)).toHaveLength(1)
  })

  test('is not linked by the address when a second factor protects it', async () => {
    await federated.configure({ socialSignIn: { automaticAccountLinking: true, skipRequiredIdentifiers: false } })
    const person = await federated.personWith(`ada${count}@example.com`)
    await federated.addTotp(person)
    const page = await federated.signIn(browser())
    expect(page.text).toContain('There is an account with')
    expect(await federated.identitiesOf(person.id)).toEqual([])
  })

  test('is asked for the second factor after the provider, and amr tells of both', async () => {
    await federated.configure({ mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
    const { sub } = await federated.claimsOf(await federated.signIn(browser()))
    const secret = await federated.addTotp({ id: String(sub) })
    const visitor = browser()
    const page = await federated.signIn(visitor)
    expect(page.text).toContain('Code from your authenticator app')
    const visit = await visitor.submit(page, { code: federated.totp(secret), choice: 'verify' }, { with: 'code' })
    const claims = await federated.claimsOf(visit)
    expect({ ...claims, amr: (claims['amr'] as string[]).toSorted() }).toMatchObject({
      ...{ sub, amr: ['fed', 'mfa', 'otp'], acr: 'urn:surrogate:acr:mfa' },
    })
  })

  test('who presses the button on the register page and is known signs in', async () => {
    const { sub } = await federated.claimsOf(await federated.signIn(browser()))
    const before = await now()
    const visit = await federated.signIn(browser(), { parameters: { first_screen: 'register' } })
    expect((await federated.claimsOf(visit)).sub).toBe(sub)
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual(['PostSignIn'])
  })

  test('who is suspended is told so after the provider has vouched for them', async () => {
    const { sub } = await federated.claimsOf(await federated.signIn(browser()))
    await federated.issuer.api('PATCH', `/users/${sub}/is-suspended`, { isSuspended: true })
    const page = await federated.signIn(browser())
    expect([page.status, headingOf(page)]).toEqual([403, 'Your account is suspended'])
  })

  test('name and picture follow a connector that is set to that, and only a change is an event', async () => {
    await federated.configure({ socialSignInConnectorTargets: ['acme', 'synced'] })
    const synced = await federated.connect(federated.provider, { target: 'synced', syncProfile: true })
    const { sub } = await federated.claimsOf(await federated.signIn(browser(), { connectorId: synced }))
    const before = await now()
    await federated.signIn(browser(), { connectorId: synced })
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual(['PostSignIn'])
    federated.provider.person = { ...federated.provider.person, name: 'Countess of Lovelace' }
    await federated.signIn(browser(), { connectorId: synced })
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual([
      ...['PostSignIn', 'PostSignIn', 'User.Data.Updated'],
    ])
    expect((await federated.issuer.api('GET', `/users/${sub}`)).body.name).toBe('Countess of Lovelace')
  })
})

describe('an enterprise', () => {
  const employee = (members = {}) => {
    federated.provider.person = {
      ...{ sub: `employee-${count}`, email: `emp${count}@corp.example`, email_verified: true, name: 'An Employee' },
      ...members,
    }
    return String(federated.provider.person['email'])
  }

  test('has its people sent there by the address alone, with it as hint, and into its organizations', async () => {
    const email = employee()
    const { body: organization } = await federated.issuer.api('POST', '/organizations', { name: 'Corp' })
    await federated.issuer.sql(
      'INSERT INTO organization_jit_sso_connectors (organization_id, sso_connector_id) VALUES ($1, $2)',
      [organization.id, federated.enterprise],
    )
    const visitor = browser()
    const page = await federated.ask(visitor)
    const sent = await visitor.submit(page, { identifier: email, choice: 'sign_in' }, { follow: false })
    expect(sent.location).toContain(federated.provider.url)
    expect(new URL(sent.location!).searchParams.get('login_hint')).toBe(email)
    const claims = await federated.claimsOf(await federated.comeBack(visitor, sent.location!))
    expect(claims['amr']).toEqual(['fed'])
    const { body: members } = await federated.issuer.api('GET', `/organizations/${organization.id}/users`)
    expect(members.map(({ id }: { id: string }) => id)).toEqual([claims['sub']])
    expect(await federated.identitiesOf(String(claims['sub']))).toEqual([
      { target: federated.enterprise, subject: `employee-${count}` },
    ])
    // Out of the organization, and in again with the next sign-in.
    await federated.issuer.api('DELETE', `/organizations/${organization.id}/users/${claims['sub']}`)
    const before = await now()
    const again = await visitor.submit(
      await federated.ask(visitor, { prompt: 'login' }),
      {
        ...{ identifier: email, choice: 'enterprise' },
      },
      { follow: false },
    )
    await federated.comeBack(visitor, again.location!)
    expect((await eventsSince(before)).map(({ event }) => event)).toEqual([
      ...['Organization.Membership.Updated', 'PostSignIn'],
    ])
  })

  test('an account with an address of its domain is its own, linked without a further proof', async () => {
    const person = await federated.personWith(employee())
    const visitor = browser()
    const sent = await visitor.submit(
      await federated.ask(visitor),
      { identifier: person.email, password: person.password, choice: 'sign_in' },
      { follow: false },
    )
    expect(sent.location).toContain(federated.provider.url)
    const visit = await federated.comeBack(visitor, sent.location!)
    expect(await federated.claimsOf(visit)).toMatchObject({ sub: person.id, amr: ['fed'] })
  })

  test('people sign in with their passwords when single sign-on is off', async () => {
    const person = await federated.personWith(employee())
    await federated.configure({ singleSignOnEnabled: false })
    const visitor = browser()
    const visit = await visitor.submit(await federated.ask(visitor), {
      ...{ identifier: person.email, password: person.password, choice: 'sign_in' },
    })
    await federated.configure({ singleSignOnEnabled: true })
    expect(await federated.claimsOf(visit)).toMatchObject({ sub: person.id, amr: ['pwd'] })
  })

  test('an address of nobody’s domain is told so', async () => {
    const visitor = browser()
    const page = await visitor.submit(await federated.ask(visitor), {
      ...{ identifier: 'somebody@elsewhere.example', choice: 'enterprise' },
    })
    expect([page.status, page.text.includes('No organization signs in here with this one')]).toEqual([400, true])
  })
})

describe('direct_sign_in', () => {
  test('leads to a social provider without a page between', async () => {
    const visitor = browser()
    const sent = await federated.ask(visitor, { direct_sign_in: 'social:acme' })
    expect(sent.location).toContain(`${federated.provider.url}/authorize`)
    expect(await federated.claimsOf(await federated.comeBack(visitor, sent.location!))).toMatchObject({ amr: ['fed'] })
  })

  test('leads to an enterprise by the id of its connector', async () => {
    const sent = await federated.ask(browser(), { direct_sign_in: `sso:${federated.enterprise}` })
    expect(sent.location).toContain(`${federated.provider.url}/authorize`)
  })

  test.each([
    [{}, null],
    [{ prompt: 'login' }, 'login'],
    [{ prompt: 'select_account' }, null],
    [{ max_age: '60' }, 'login'],
  ])('%j: the provider is told to ask again where the application wants a new sign-in', async (parameters, prompt) => {
    const sent = await federated.ask(browser(), { direct_sign_in: 'social:acme', ...parameters })
    const page = sent.location ?? (await federated.press(browser(), sent))
    expect(new URL(page).searchParams.get('prompt')).toBe(prompt)
  })

  test('that names nothing that people may use leads to the page', async () => {
    for (const direct of ['social:nobody', 'sso:nobody', `social:${federated.enterprise}`, 'saml:acme', 'social:']) {
      const page = await federated.ask(browser(), { direct_sign_in: direct })
      expect([direct, page.status, page.location]).toEqual([direct, 200, undefined])
    }
  })

  test('does not stand in the way of whoever has signed in, or of somebody who came back without success', async () => {
    const visitor = browser()
    await federated.signIn(visitor)
    const visit = await federated.ask(visitor, { direct_sign_in: 'social:acme' })
    expect(parametersOf(visit)).toHaveProperty('code')
    const another = browser()
    federated.provider.be('error_with_script')
    const sent = await federated.ask(another, { direct_sign_in: 'social:acme' })
    const page = await federated.comeBack(another, sent.location!)
    expect([page.status, page.location]).toEqual([200, undefined])
  })
})

test('the buttons stand in the order of the settings, on both pages, and go with them', async () => {
  const second = await federated.connect(federated.provider, { target: 'beta', look: { name: 'Beta <b>' } })
  const buttons = (text: string) => [...text.matchAll(/value="provider:([^"]+)"/g)].map(([, id]) => id)
  await federated.configure({ socialSignInConnectorTargets: ['beta', 'acme'] })
  const page = await federated.ask(browser())
  expect(buttons(page.text)).toEqual([second, federated.social])
  expect(page.text).toContain('Beta &lt;b&gt;')
  const register = await federated.ask(browser(), { first_screen: 'register' })
  expect(buttons(register.text)).toEqual([second, federated.social])
  await federated.configure({ socialSignInConnectorTargets: [] })
  expect(buttons((await federated.ask(browser())).text)).toEqual([])
})
