import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { textOf, visitAccount } from '../../../support/account-pages.ts'
import { headingOf } from '../../../support/browser.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../../support/federated.ts'

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
