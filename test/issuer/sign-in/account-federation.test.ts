import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTokenAudit } from '../../../issuer/base/audit/token-audit.ts'
import { createHmacs } from '../../../issuer/base/hmac-keys-store.ts'
import { createFederation } from '../../../issuer/connectors/federation.ts'
import { signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { createAccountFederation } from '../../../issuer/interaction/account-federation.ts'
import { createFederationRequests } from '../../../issuer/interaction/federation-requests.ts'
import { silentLogger } from '../../../platform/logger.ts'
import type { Browser } from '../../support/browser.ts'
import { createBrowser } from '../../support/browser.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../support/federated.ts'

/** Whoever looks after their account gets an identity at a provider, as the account pages begin it. */

let federated: TestFederatedSignIn
let begin: ReturnType<typeof createAccountFederation>['begin']
let count = 0
beforeAll(async () => {
  federated = await startFederatedSignIn()
  const { database, baseUrl } = federated.issuer
  const { envelope } = federated
  const settings = () => signInExperience.schema.parse({ socialSignInConnectorTargets: ['acme'] })
  const federation = createFederation({
    ...{ database, envelope, experience: settings, mocks: false, now: () => new Date() },
    outbound: { allowedNetworks: ['127.0.0.0/8'] },
  })
  const hmac = await createHmacs(database, envelope)
  const { query } = database
  const requests = createFederationRequests({ query, federation, envelope, hmac, settings, baseUrl })
  const audit = createTokenAudit({ database, logger: silentLogger })
  begin = createAccountFederation({ query, requests, audit }).begin
})
afterAll(() => federated.close())
beforeEach(() => {
  federated.clock.now = Date.now()
  federated.provider.be()
  federated.provider.person = { sub: `subject-${++count}`, email: `ada${count}@example.com`, email_verified: true }
})

const browser = () => createBrowser(federated.issuer.baseUrl)
const signedIn = async (): Promise<{ visitor: Browser; person: { id: string }; sessionId: string }> => {
  const [visitor, person] = [browser(), await federated.createPerson()]
  await federated.flow.signIn(visitor, federated.client, person)
  const [row] = await federated.issuer.sql<{ id: string }>('SELECT id FROM sessions WHERE user_id = $1', [person.id])
  return { visitor, person, sessionId: row!.id }
}
const begun = async () => {
  const { visitor, person, sessionId } = await signedIn()
  const asked = { connectorId: federated.social, returnTo: '/account/identities?from=test' }
  const sent = await begin({ userId: person.id, sessionId, ip: '203.0.113.9' }, asked)
  if (sent.outcome !== 'begun') throw new Error(sent.outcome)
  return { visitor, person, sessionId, url: sent.url, proofId: sent.proofId }
}
/** Where the callback sends the browser: not followed, since the page is not what this is about. */
const comeBack = async (visitor: Browser, url: string) =>
  new URL((await visitor.send((await federated.provider.signIn(url)).href)).location!)

test('comes back with a verification of the session, which knows the identity and no secret', async () => {
  const { visitor, person, sessionId, url, proofId } = await begun()
  const location = await comeBack(visitor, url)
  expect(location.pathname).toBe('/account/identities')
  expect(Object.fromEntries(location.searchParams)).toEqual({
    from: 'test',
    outcome: 'verified',
    verificationId: proofId,
  })
  const [row] = await federated.issuer.sql<Record<string, unknown>>('SELECT * FROM proofs WHERE id = $1', [proofId])
  expect(row).toMatchObject({
    ...{ holder: sessionId, user_id: person.id, kind: 'federated', purpose: 'bind', secret: null },
    data: { federated: { target: 'acme', subject: `subject-${count}`, email: `ada${count}@example.com` } },
  })
  // Nothing is linked by that alone: the account decides it.
  expect(await federated.identitiesOf(person.id)).toEqual([])
})

test('T 107: an identity of somebody else is none to be had', async () => {
  const owner = await federated.createPerson()
  await federated.issuer.api('PUT', `/users/${owner.id}/identities/acme`, { userId: `subject-${count}` })
  const { visitor, url, proofId } = await begun()
  const location = await comeBack(visitor, url)
  expect(location.searchParams.get('outcome')).toBe('identity_in_use')
  const [row] = await federated.issuer.sql('SELECT verified_at FROM proofs WHERE id = $1', [proofId])
  expect(row).toEqual({ verified_at: null })
})

test('another session, nobody’s or somebody else’s, is refused, and so is an answer that comes again', async () => {
  const { visitor, url } = await begun()
  const back = await federated.provider.signIn(url)
  expect((await browser().send(back.href)).status).toBe(400)
  expect((await (await signedIn()).visitor.send(back.href)).status).toBe(400)
  const stranger = back.href.replace(federated.social, 'other')
  expect((await visitor.send(stranger)).status).toBe(400)
  expect((await visitor.send(back.href)).location).toContain('outcome=verified')
  const again = await visitor.send(back.href)
  expect(again.location).toBe(`${federated.issuer.baseUrl}/account/identities?from=test`)
})

test('a session that has ended meanwhile gets nothing', async () => {
  const { visitor, person, url } = await begun()
  await federated.issuer.api('PATCH', `/users/${person.id}/is-suspended`, { isSuspended: true })
  expect((await visitor.send((await federated.provider.signIn(url)).href)).status).toBe(400)
})

test('what the provider refuses or cannot say is told by its kind alone', async () => {
  const outcomes = { error_with_script: 'denied', wrong_nonce: 'failed', broken: 'unavailable' } as const
  for (const [hostility, outcome] of Object.entries(outcomes)) {
    const { visitor, url } = await begun()
    federated.provider.be(hostility as keyof typeof outcomes)
    const location = await comeBack(visitor, url)
    federated.provider.be()
    expect([hostility, location.search]).toEqual([hostility, `?from=test&outcome=${outcome}`])
  }
})

test('it leads back to account pages, and nowhere else', async () => {
  for (const returnTo of [
    'https://evil.example/',
    '//evil.example/account',
    '/accounts',
    '/sign-in',
    '/account.evil',
  ]) {
    const asked = { connectorId: federated.social, returnTo }
    expect(() => begin({ userId: 'x', sessionId: 'y', ip: '203.0.113.9' }, asked), returnTo).toThrow('no account page')
  }
})
