import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBrowser, headingOf, type Visit } from '../../support/browser.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../support/federated.ts'
import { type HostilityName, type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'

/** flows.md §3, T-FED 100 to 110: a provider, a browser or somebody between that wants in. */

let federated: TestFederatedSignIn
let other: IdentityProvider
let otherId: string
let count = 0
beforeAll(async () => {
  federated = await startFederatedSignIn({
    signUp: { identifiers: [], password: false, verify: false },
    socialSignInConnectorTargets: ['acme', 'other'],
  })
  other = await startIdentityProvider()
  otherId = await federated.connect(other, { target: 'other', look: { name: 'Other' } })
})
afterAll(async () => {
  await federated.close()
  await other.close()
})
beforeEach(() => {
  federated.clock.now = Date.now()
  count++
  federated.provider.person = {
    ...{ sub: `subject-${count}`, email: `ada${count}@example.com`, email_verified: true, name: 'Ada' },
  }
})
afterEach(() => {
  federated.provider.be()
  other.be()
})

const browser = () => createBrowser(federated.issuer.baseUrl)
const begun = async () => {
  const visitor = browser()
  return { visitor, url: await federated.press(visitor, await federated.ask(visitor)) }
}
/** The sign-in goes on: its page is there, says something, and has every other way. */
const expectUsable = (page: Visit) => {
  expect([page.status, page.location]).toEqual([200, undefined])
  expect(page.forms[0]!.names).toContain('password')
}
const expectRefused = (page: Visit) => {
  expect(page.status).toBe(400)
  expect(page.location).toBeUndefined()
}
const counts = async () => {
  const [row] = await federated.issuer.sql<{ users: number; sessions: number; identities: number }>(
    `SELECT (SELECT count(*) FROM users)::int AS users, (SELECT count(*) FROM sessions)::int AS sessions,
       (SELECT count(*) FROM user_identities)::int AS identities`,
  )
  return row
}

describe('T 100: an answer belongs to one request of one browser', () => {
  test('that of another interaction, brought by its own browser, says nothing in this one', async () => {
    const { visitor, url } = await begun()
    const second = await federated.ask(visitor)
    const visit = await federated.comeBack(visitor, url)
    expect(visit.location).toContain('code=')
    // The second one knows nobody by it: but for the session, which is the same browser's.
    const [row] = await federated.issuer.sql<{ proofs: number }>(
      'SELECT count(*)::int AS proofs FROM proofs WHERE interaction_id = $1',
      [second.url.slice(-21)],
    )
    expect(row).toEqual({ proofs: 0 })
  })

  test('that of another browser is refused, and stays good for its own', async () => {
    const { visitor, url } = await begun()
    const before = await counts()
    const back = await federated.provider.signIn(url)
    const stranger = browser()
    expectRefused(await stranger.get(back.href))
    const withInteraction = browser()
    await federated.ask(withInteraction)
    const page = await withInteraction.get(back.href)
    expectRefused(page)
    expect(headingOf(page)).toBe('This sign-in was begun in another browser')
    expect(await counts()).toEqual(before)
    expect((await visitor.get(back.href)).location).toContain('code=')
  })

  test('that of another connector is refused', async () => {
    const { visitor, url } = await begun()
    const back = await federated.provider.signIn(url)
    const before = await counts()
    expectRefused(await visitor.get(back.href.replace(federated.social, otherId)))
    expectRefused(await visitor.get(back.href.replace(federated.social, 'unknown')))
    expect(await counts()).toEqual(before)
  })

  test('one that comes again says where the sign-in stands, and nothing more', async () => {
    const { visitor, url } = await begun()
    const back = await federated.provider.signIn(url)
    expect((await visitor.get(back.href)).location).toContain('code=')
    const before = await counts()
    const asked = federated.provider.tokenRequests.length
    const page = await visitor.get(back.href)
    expect(page.url).toMatch(/\/sign-in\/[0-9a-z]{21}$/)
    expect(await counts()).toEqual(before)
    expect(federated.provider.tokenRequests).toHaveLength(asked)
  })

  test('of twenty that come at once one is looked at', async () => {
    const { visitor, url } = await begun()
    const back = await federated.provider.signIn(url)
    const asked = federated.provider.tokenRequests.length
    await Promise.all(Array.from({ length: 20 }, () => visitor.send(back.href)))
    expect(federated.provider.tokenRequests.length - asked).toBe(1)
  })

  test('without a state, with a made-up or a repeated one it is refused', async () => {
    const { visitor, url } = await begun()
    const back = await federated.provider.signIn(url)
    const before = await counts()
    const state = back.searchParams.get('state')!
    const [id = ''] = state.split('.')
    for (const forged of [undefined, '', 'x', id, `${id}.${'A'.repeat(43)}`, `${'z'.repeat(21)}${state.slice(21)}`]) {
      const changed = new URL(back)
      changed.searchParams.delete('state')
      if (forged !== undefined) changed.searchParams.set('state', forged)
      expectRefused(await visitor.get(changed.href))
    }
    const twice = new URL(back)
    twice.searchParams.append('state', state)
    expectRefused(await visitor.get(twice.href))
    expect(await counts()).toEqual(before)
    expect((await visitor.get(back.href)).location).toContain('code=')
  })

  test('the request before, in the same sign-in, is void', async () => {
    const { visitor, url } = await begun()
    const first = await federated.provider.signIn(url)
    const page = await federated.ask(visitor)
    const again = await federated.press(visitor, page)
    const abandoned = await federated.press(visitor, page)
    const before = await counts()
    const old = await visitor.get((await federated.provider.signIn(again)).href)
    expectUsable(old)
    expect(await counts()).toEqual(before)
    expect((await visitor.get((await federated.provider.signIn(abandoned)).href)).location).toContain('code=')
    expect(first.searchParams.get('state')).not.toBe(null)
  })

  test('after ten minutes it is too late', async () => {
    const { visitor, url } = await begun()
    await federated.issuer.sql(`UPDATE proofs SET expires_at = now() WHERE kind = 'federated' AND verified_at IS NULL`)
    expectUsable(await federated.comeBack(visitor, url))
  })
})

describe('T 101 to 103: what the provider sends is believed only as the protocol says', () => {
  const lies: HostilityName[] = [
    ...(['wrong_nonce', 'no_nonce', 'wrong_audience', 'foreign_audience', 'wrong_issuer', 'unsigned'] as const),
    ...(['symmetric', 'other_key', 'expired', 'issued_in_future', 'userinfo_of_another', 'mix_up', 'unnamed'] as const),
  ]
  test.each(lies)('%s: nobody is signed in, and the page goes on', async (lie) => {
    const { visitor, url } = await begun()
    const before = await counts()
    federated.provider.be(lie)
    const page = await federated.comeBack(visitor, url)
    expectUsable(page)
    expect(page.text).toContain('We could not accept the answer of')
    expect(await counts()).toEqual(before)
  })

  test('T 103: the code of another provider, brought to this one’s address, opens nothing', async () => {
    const { visitor, url } = await begun()
    const second = browser()
    const elsewhere = await other.signIn(await federated.press(second, await federated.ask(second), otherId))
    const before = await counts()
    const page = await federated.comeBack(visitor, url, (back) => {
      back.searchParams.set('code', elsewhere.searchParams.get('code')!)
      back.searchParams.set('iss', elsewhere.searchParams.get('iss')!)
    })
    expectUsable(page)
    expect(await counts()).toEqual(before)
  })
})

describe('T 104: an address that is not vouched for', () => {
  test.each(['unverified_email', 'unverified_email_as_text', 'unsaid_email'] as const)(
    '%s: is not taken, and links nothing',
    async (hostility) => {
      await federated.configure({ socialSignIn: { automaticAccountLinking: true, skipRequiredIdentifiers: false } })
      const victim = await federated.personWith(`ada${count}@example.com`)
      federated.provider.be(hostility)
      const claims = await federated.claimsOf(await federated.signIn(browser()))
      await federated.configure({ socialSignIn: { automaticAccountLinking: false, skipRequiredIdentifiers: false } })
      expect(claims['sub']).not.toBe(victim.id)
      expect((await federated.issuer.api('GET', `/users/${claims['sub']}`)).body.primaryEmail).toBe(null)
      expect(await federated.identitiesOf(victim.id)).toEqual([])
    },
  )
})

describe('T 105: an enterprise that speaks for a domain which is not its own', () => {
  test('links nobody, lends no address, and lets nobody into the other domain’s organization', async () => {
    const victim = await federated.personWith(`ceo${count}@b.example`)
    const { body: organization } = await federated.issuer.api('POST', '/organizations', { name: 'B' })
    await federated.issuer.api('POST', `/organizations/${organization.id}/jit/email-domains`, {
      emailDomain: 'b.example',
    })
    federated.provider.person = { ...federated.provider.person, email: victim.email }
    const visitor = browser()
    const sent = await federated.ask(visitor, { direct_sign_in: `sso:${federated.enterprise}` })
    const claims = await federated.claimsOf(await federated.comeBack(visitor, sent.location!))
    expect(claims['sub']).not.toBe(victim.id)
    expect((await federated.issuer.api('GET', `/users/${claims['sub']}`)).body.primaryEmail).toBe(null)
    expect((await federated.issuer.api('GET', `/organizations/${organization.id}/users`)).body).toEqual([])
  })

  test('an address that its domain gave to somebody else since opens nothing of whoever had it', async () => {
    const email = `desk${count}@corp.example`
    federated.provider.person = { ...federated.provider.person, email }
    const first = browser()
    const sent = await federated.ask(first, { direct_sign_in: `sso:${federated.enterprise}` })
    const { sub } = await federated.claimsOf(await federated.comeBack(first, sent.location!))
    federated.provider.person = { ...federated.provider.person, sub: `successor-${count}` }
    const second = browser()
    const again = await federated.ask(second, { direct_sign_in: `sso:${federated.enterprise}` })
    const page = await federated.comeBack(second, again.location!)
    expectUsable(page)
    expect(page.text).toContain('There is an account with')
    expect(await federated.identitiesOf(String(sub))).toHaveLength(1)
  })
})

describe('an address in the domain of an enterprise that a social provider tells', () => {
  test('links nobody, is nobody’s, and lets nobody into an organization of its domain', async () => {
    const victim = await federated.personWith(`cto${count}@corp.example`)
    const { body: organization } = await federated.issuer.api('POST', '/organizations', { name: 'Corp' })
    await federated.issuer.api('POST', `/organizations/${organization.id}/jit/email-domains`, {
      emailDomain: 'corp.example',
    })
    await federated.configure({ socialSignIn: { automaticAccountLinking: true, skipRequiredIdentifiers: false } })
    for (const email of [victim.email, `dismissed${count}@Corp.Example`]) {
      federated.provider.person = { ...federated.provider.person, sub: `of ${email}`, email }
      const claims = await federated.claimsOf(await federated.signIn(browser()))
      expect(claims['sub']).not.toBe(victim.id)
      expect((await federated.issuer.api('GET', `/users/${claims['sub']}`)).body.primaryEmail).toBe(null)
    }
    await federated.configure({ socialSignIn: { automaticAccountLinking: false, skipRequiredIdentifiers: false } })
    expect(await federated.identitiesOf(victim.id)).toEqual([])
    expect((await federated.issuer.api('GET', `/organizations/${organization.id}/users`)).body).toEqual([])
  })
})

describe('T 106: an account that somebody made beforehand with the address of a victim', () => {
  test('is not linked by the address, even where addresses link', async () => {
    await federated.configure({ socialSignIn: { automaticAccountLinking: true, skipRequiredIdentifiers: false } })
    const trap = await federated.personWith(`ada${count}@example.com`, { isVerified: false })
    const page = await federated.signIn(browser())
    await federated.configure({ socialSignIn: { automaticAccountLinking: false, skipRequiredIdentifiers: false } })
    expect(page.text).toContain('There is an account with')
    expect(await federated.identitiesOf(trap.id)).toEqual([])
  })

  test('is the victim’s who proves the address: the password of before, and what it opened, are void', async () => {
    const trap = await federated.personWith(`ada${count}@example.com`, { isVerified: false })
    const attacker = browser()
    const inside = await federated.flow.signIn(attacker, federated.client, trap)
    expect(inside).toBeTruthy()
    const victim = browser()
    const page = await federated.signIn(victim)
    const sent = await victim.submit(page, { choice: 'code' })
    const code = await federated.codeTo(trap.email)
    const visit = await victim.submit(sent, { code, choice: 'verify' })
    expect(await federated.claimsOf(visit)).toMatchObject({ sub: trap.id })
    const { body: user } = await federated.issuer.api('GET', `/users/${trap.id}`)
    expect(user).toMatchObject({ hasPassword: false, identities: { acme: { userId: `subject-${count}` } } })
    // The attacker has no session any more, and no password.
    const again = await federated.ask(attacker)
    expectUsable(again)
    const refused = await attacker.submit(again, {
      identifier: trap.username,
      password: trap.password,
      choice: 'sign_in',
    })
    expect(refused.status).toBe(400)
  })

  test('whoever shows the password keeps it', async () => {
    const person = await federated.personWith(`ada${count}@example.com`, { isVerified: false })
    const visitor = browser()
    await visitor.submit(await federated.signIn(visitor), { password: person.password, choice: 'sign_in' })
    const { body: user } = await federated.issuer.api('GET', `/users/${person.id}`)
    expect(user).toMatchObject({ hasPassword: true, identities: { acme: { userId: `subject-${count}` } } })
  })
})

describe('T 108: a provider that answers with an error', () => {
  test('is told in our words; its own stand below, as text', async () => {
    const { visitor, url } = await begun()
    federated.provider.be('error_with_script')
    const page = await federated.comeBack(visitor, url)
    expectUsable(page)
    expect(page.text).not.toContain('<script>alert')
    expect(page.text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'none'")
    // And once more, with success.
    federated.provider.be()
    const visit = await federated.comeBack(visitor, await federated.press(visitor, page))
    expect(visit.location).toContain('code=')
  })

  test('an error of ten kilobytes with marks of direction is cut, and steers nothing', async () => {
    const { visitor, url } = await begun()
    federated.provider.be({
      callback(parameters) {
        parameters.delete('code')
        parameters.set('error', 'server_error')
        parameters.set('error_description', `\u202e${'evil '.repeat(1_500)}`)
      },
    })
    const page = await federated.comeBack(visitor, url)
    expectUsable(page)
    expect(page.text).not.toContain('\u202e')
    expect(page.text.split('evil').length).toBeLessThan(60)
  })
})

describe('T 109, T 110: a provider that is down, slow, or leads elsewhere', () => {
  test.each(['broken', 'huge', 'redirect_to_loopback', 'out_of_order'] as const)(
    '%s: the sign-in goes on in another way',
    async (hostility) => {
      const person = await federated.createPerson()
      const { visitor, url } = await begun()
      federated.provider.be(hostility)
      const page = await federated.comeBack(visitor, url)
      expectUsable(page)
      const visit = await visitor.submit(page, {
        ...{ identifier: person.username, password: person.password, choice: 'sign_in' },
      })
      expect(await federated.claimsOf(visit)).toMatchObject({ sub: person.id, amr: ['pwd'] })
    },
  )

  test.each(['token_elsewhere', 'keys_elsewhere', 'document_of_another'] as const)(
    '%s: nothing is asked there',
    async (hostility) => {
      const hostile = await startIdentityProvider()
      hostile.be(hostility)
      const id = await federated.connect(hostile, { target: `t${count}`, look: { name: 'Hostile' } })
      await federated.configure({ socialSignInConnectorTargets: ['acme', 'other', `t${count}`] })
      const visitor = browser()
      const page = await federated.ask(visitor)
      const sent = await visitor.submit(page, { choice: `provider:${id}` }, { with: 'choice', follow: false })
      const before = await counts()
      const last = sent.location?.startsWith(hostile.url)
        ? await visitor.get((await hostile.signIn(sent.location)).href)
        : await visitor.get(sent.location!)
      expectUsable(last)
      expect(await counts()).toEqual(before)
      await hostile.close()
    },
  )

  test('one that nobody listens at is told on the page', async () => {
    const gone = await startIdentityProvider()
    const id = await federated.connect(gone, { target: `gone${count}`, look: { name: 'Gone' } })
    await federated.configure({ socialSignInConnectorTargets: ['acme', 'other', `gone${count}`] })
    await gone.close()
    const visitor = browser()
    const page = await visitor.submit(await federated.ask(visitor), { choice: `provider:${id}` }, { with: 'choice' })
    expectUsable(page)
    expect(page.text).toContain('cannot be reached at present')
  })
})

describe('what an operator takes back while somebody is at the provider', () => {
  test('a provider that is no longer offered signs nobody in', async () => {
    const { visitor, url } = await begun()
    await federated.configure({ socialSignInConnectorTargets: ['other'] })
    const before = await counts()
    const page = await federated.comeBack(visitor, url)
    await federated.configure({ socialSignInConnectorTargets: ['acme', 'other'] })
    expectUsable(page)
    expect(await counts()).toEqual(before)
  })

  test('a button that the settings do not have leads nowhere', async () => {
    const visitor = browser()
    const page = await federated.ask(visitor)
    await federated.configure({ singleSignOnEnabled: false })
    const sent = await visitor.submit(page, { choice: `provider:${federated.enterprise}` }, { with: 'choice' })
    await federated.configure({ singleSignOnEnabled: true })
    expectUsable(sent)
  })
})

test('a provider that posts its answer from another site has it taken by a redirect that brings the cookies', async () => {
  const { visitor, url } = await begun()
  const back = await federated.provider.signIn(url)
  const cookies = new Map(visitor.cookies)
  visitor.cookies.clear()
  // As a browser posts from another site: without the cookies, which are Lax.
  const posted = await visitor.send(`${back.origin}${back.pathname}`, {
    method: 'POST',
    body: back.searchParams,
    headers: { origin: 'https://appleid.example', 'sec-fetch-site': 'cross-site' },
  })
  expect([posted.status, posted.headers.getSetCookie()]).toEqual([303, []])
  expect(posted.location).not.toContain(back.searchParams.get('code')!)
  for (const [name, value] of cookies) visitor.cookies.set(name, value)
  const visit = await visitor.get(posted.location!)
  expect(visit.location).toContain('code=')
  // Once.
  expectRefused(await visitor.get(posted.location!))
})

test('a flood of posts ends with a page that says so', async () => {
  const visitor = browser()
  const post = () =>
    visitor.send(`/callback/${federated.social}`, {
      method: 'POST',
      body: new URLSearchParams({ state: 'x' }),
      headers: { 'x-forwarded-for': '2001:db8:f100::1' },
    })
  const statuses = new Set<number>()
  for (let sent = 0; sent < 700 && !statuses.has(429); sent++) statuses.add((await post()).status)
  expect([...statuses]).toEqual([303, 429])
  expect((await post()).text).toContain('<h1>')
})

test('what a provider posted is forgotten after a minute', async () => {
  const { visitor, url } = await begun()
  const back = await federated.provider.signIn(url)
  const posted = await visitor.send(`${back.origin}${back.pathname}`, { method: 'POST', body: back.searchParams })
  await federated.issuer.sql(`UPDATE pushed_requests SET expires_at = now() WHERE kind = 'posted'`)
  expectRefused(await visitor.get(posted.location!))
})

test('nothing that proves a request is in the database or the log in clear', async () => {
  const { visitor, url } = await begun()
  const asked = new URL(url).searchParams
  const back = await federated.provider.signIn(url)
  const dump = async () =>
    JSON.stringify(
      await federated.issuer.sql(
        'SELECT p.*, i.state AS told FROM proofs p JOIN interactions i ON i.id = p.interaction_id',
      ),
    )
  const during = await dump()
  await visitor.get(back.href)
  const verifier = federated.provider.tokenRequests.at(-1)!.get('code_verifier')!
  const after =
    (await dump()) + JSON.stringify(await federated.issuer.sql('SELECT * FROM logs')) + federated.issuer.logged()
  const secrets = {
    nonce: asked.get('nonce'),
    state: asked.get('state'),
    verifier,
    code: back.searchParams.get('code'),
  }
  for (const [name, secret] of Object.entries(secrets)) {
    expect(secret, name).toBeTruthy()
    expect(during.includes(secret!), name).toBe(false)
    expect(after.includes(secret!), name).toBe(false)
  }
})
