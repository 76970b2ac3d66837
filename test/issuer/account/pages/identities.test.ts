import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { textOf, visitAccount } from '../../../support/account-pages.ts'
import { headingOf } from '../../../support/browser.ts'
import type { ExperiencePerson } from '../../../support/experience.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../../support/federated.ts'
import { startIdentityProvider } from '../../../support/identity-provider.ts'
import { until } from '../../../support/until.ts'

/** Accounts at other providers: linked, unlinked, and as a way to one's account. */

let federated: TestFederatedSignIn
let count = 0
beforeAll(async () => {
  federated = await startFederatedSignIn()
})
afterAll(() => federated.close())
beforeEach(() => {
  federated.clock.now = Date.now()
  federated.provider.be()
  federated.provider.person = { sub: `subject-${++count}`, email: `ada${count}@example.com`, email_verified: true }
})

test('an account elsewhere is linked after the person confirmed it, signs in to the account, and is removed', async () => {
  const person = await federated.createPerson()
  const ada = visitAccount(federated.issuer, person)
  expect(textOf(await ada.open('/account/identities'))).toContain('please confirm first that it is you')
  await ada.confirm()
  const page = await ada.open('/account/identities')
  const sent = await ada.browser.submit(page, { choice: 'begin' }, { with: 'connector', follow: false })
  const back = await ada.browser.get((await federated.provider.signIn(sent.location!)).href)
  expect(textOf(back)).toContain('The provider has confirmed who you are there.')
  // Nothing is linked by coming back alone.
  expect(await federated.identitiesOf(person.id)).toEqual([])
  const linked = await ada.browser.submit(back, { choice: 'link' }, { with: 'verificationId' })
  expect(textOf(linked)).toContain('It is linked: you can sign in with it.')
  expect(textOf(linked)).toContain(`ada${count}@example.com`)
  expect(await federated.identitiesOf(person.id)).toEqual([{ target: 'acme', subject: `subject-${count}` }])

  const elsewhere = visitAccount(federated.issuer, person).browser
  const signIn = await elsewhere.get('/account/identities')
  const arrived = await federated.comeBack(elsewhere, await federated.press(elsewhere, signIn))
  expect(headingOf(arrived)).toBe('Linked accounts')

  const removed = await ada.browser.submit(
    await ada.open('/account/identities'),
    { choice: 'remove' },
    { with: 'target' },
  )
  expect(textOf(removed)).toContain('It is removed.')
  expect(await federated.identitiesOf(person.id)).toEqual([])
})

test('T 107: one of somebody else is not to be had, and what a link says was verified links nothing', async () => {
  const [owner, person] = [await federated.createPerson(), await federated.createPerson()]
  await federated.issuer.api('PUT', `/users/${owner.id}/identities/acme`, { userId: `subject-${count}` })
  const ada = visitAccount(federated.issuer, person)
  await ada.confirm()
  const sent = await ada.browser.submit(
    await ada.open('/account/identities'),
    { choice: 'begin' },
    { with: 'connector', follow: false },
  )
  const back = await ada.browser.get((await federated.provider.signIn(sent.location!)).href)
  expect(textOf(back)).toContain('It is linked to another account')
  const lied = await ada.open('/account/identities?outcome=verified&verificationId=abcdefghijklmnopqrstu')
  const refused = await ada.browser.submit(lied, { choice: 'link' }, { with: 'verificationId' })
  expect(refused.status).toBe(400)
  expect(await federated.identitiesOf(person.id)).toEqual([])
})

describe('whoever has nothing but an account elsewhere confirms by it who they are', () => {
  /** Signed in; `kind`: how the provider's subject is known as them. */
  const arrive = async ({
    kind = 'social',
    next = '/account/data',
  }: {
    kind?: 'social' | 'sso'
    next?: string
  } = {}) => {
    const person = await federated.createPerson({ hasAddresses: false })
    const { browser, open } = visitAccount(federated.issuer, person)
    await open(next)
    await federated.issuer.sql('UPDATE users SET password_digest = NULL, password_algorithm = NULL WHERE id = $1', [
      person.id,
    ])
    await known(person, kind)
    return { person, browser, next }
  }
  const known = async ({ id }: Pick<ExperiencePerson, 'id'>, kind: 'social' | 'sso') => {
    const { sub } = federated.provider.person
    if (kind === 'social') await federated.issuer.api('PUT', `/users/${id}/identities/acme`, { userId: sub })
    else {
      await federated.issuer.sql(
        `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject) VALUES ($1, $1, $2, $3, $4)`,
        [id, federated.enterprise, federated.provider.issuer, sub],
      )
    }
  }
  type Arrived = Awaited<ReturnType<typeof arrive>>

  const ask = async ({ browser, next }: Arrived) => {
    const page = await browser.get(`/account/confirm?next=${next}`)
    const { location } = await browser.submit(page, { choice: 'provider' }, { with: 'connector', follow: false })
    return new URL(location!)
  }
  const comeBack = async ({ browser }: Arrived, url: URL) =>
    browser.get((await federated.provider.signIn(url.href)).href)
  const isConfirmed = async ({ browser, next }: Arrived) =>
    !textOf(await browser.get(next)).includes('please confirm first that it is you')

  test.each(['social', 'sso'] as const)('%s: the provider asks again, and it counts for ten minutes', async (kind) => {
    const ada = await arrive({ kind })
    const url = await ask(ada)
    expect(url.searchParams.get('prompt')).toBe('login')
    const page = await comeBack(ada, url)
    expect(new URL(page.url).pathname).toBe('/account/data')
    expect(textOf(page)).toContain('Thank you. You can make changes now.')
    await until(async () =>
      expect(
        await federated.issuer.sql(
          `SELECT result FROM logs WHERE key = 'Account.Verification.federated' AND user_id = $1`,
          [ada.person.id],
        ),
      ).toEqual([{ result: 'Success' }]),
    )
    await federated.issuer.sql('UPDATE proofs SET expires_at = now() WHERE user_id = $1', [ada.person.id])
    expect(await isConfirmed(ada)).toBe(false)
  })

  test('what needs a confirmation can be done after it: their account is deleted', async () => {
    const ada = await arrive()
    const page = await comeBack(ada, await ask(ada))
    await ada.browser.submit(page, { choice: 'delete', sure: 'yes' }, { with: 'sure' })
    expect(await federated.issuer.sql('SELECT FROM users WHERE id = $1', [ada.person.id])).toEqual([])
  })

  test('somebody else there, or nobody’s identity, confirms nothing, and is linked to nobody', async () => {
    const ada = await arrive()
    const url = await ask(ada)
    federated.provider.person = { sub: `another-${count}` }
    const page = await comeBack(ada, url)
    expect(textOf(page)).toContain('The provider did not confirm that it is you.')
    expect(await isConfirmed(ada)).toBe(false)
    const owner = await federated.createPerson()
    const again = await ask(ada)
    await federated.issuer.api('PUT', `/users/${owner.id}/identities/acme`, { userId: `another-${count}` })
    expect(textOf(await comeBack(ada, again))).toContain('The provider did not confirm that it is you.')
    expect(await isConfirmed(ada)).toBe(false)
    expect(await federated.identitiesOf(ada.person.id)).toEqual([{ target: 'acme', subject: `subject-${count}` }])
  })

  test('an answer that is wrong, comes again, or in another browser confirms nothing', async () => {
    const ada = await arrive()
    federated.provider.be('wrong_nonce')
    expect(textOf(await comeBack(ada, await ask(ada)))).toContain('That did not work.')
    federated.provider.be('error_with_script')
    expect(textOf(await comeBack(ada, await ask(ada)))).toContain('The provider did not confirm that it is you.')
    federated.provider.be()
    const back = await federated.provider.signIn((await ask(ada)).href)
    const stranger = visitAccount(federated.issuer, ada.person).browser
    expect((await stranger.get(back.href)).status).toBe(400)
    expect(await isConfirmed(ada)).toBe(false)
    await ada.browser.get(back.href)
    expect(await isConfirmed(ada)).toBe(true)
    await federated.issuer.sql('UPDATE proofs SET consumed_at = now() WHERE user_id = $1', [ada.person.id])
    await ada.browser.get(back.href)
    expect(await isConfirmed(ada)).toBe(false)
  })

  test('what confirmed them links nothing, and what may be linked confirms nothing', async () => {
    const ada = await arrive({ next: '/account/identities' })
    await comeBack(ada, await ask(ada))
    const [proof] = await federated.issuer.sql<{ id: string }>(
      `SELECT id FROM proofs WHERE user_id = $1 AND kind = 'federated' AND purpose = 'reauth'`,
      [ada.person.id],
    )
    await federated.issuer.api('DELETE', `/users/${ada.person.id}/identities/acme`)
    const lied = await ada.browser.get(`/account/identities?outcome=verified&verificationId=${proof!.id}`)
    // Nor does it confirm anything any more: the identity is theirs no longer.
    expect(textOf(lied)).toContain('please confirm first that it is you')
    expect(await federated.identitiesOf(ada.person.id)).toEqual([])
  })

  test('a provider that the settings do not offer, or at which one is not known, is no way', async () => {
    const other = await startIdentityProvider()
    onTestFinished(() => other.close())
    const otherId = await federated.connect(other, { target: 'other', look: { name: 'Other' } })
    await federated.configure({ socialSignInConnectorTargets: ['acme', 'other'] })
    const ada = await arrive()
    const page = await ada.browser.get('/account/confirm')
    expect(textOf(page)).toContain('Continue with Acme')
    expect(textOf(page)).not.toContain('Continue with Other')
    const lied = await ada.browser.submit(page, { choice: 'provider', connector: otherId }, { with: 'connector' })
    expect([lied.status, textOf(lied)]).toEqual([400, expect.stringContaining('That did not work.')])
    await federated.configure({ socialSignInConnectorTargets: ['other'] })
    expect(textOf(await ada.browser.get('/account/confirm'))).toContain('None of your ways to sign in')
    await federated.configure({ socialSignInConnectorTargets: ['acme'] })
  })
})
