import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Acr } from '../../../../issuer/tokens/sessions/session.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { loadPolicies, type PolicySet, shippedPolicies } from '../../../../policies/decide.ts'
import { authorize } from '../../../support/authorizations.ts'
import { accessTokenType, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** The sample rules in an issuer, through HTTP: what each of them prevents. */

let issuer: TestIssuer
let desk: TestApplication
let orders: string
let current: PolicySet
const folders: string[] = []

/** From here on the issuer asks `impersonation.rego` with these samples beside it. */
const use = async (...samples: string[]) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-samples-'))
  folders.push(folder)
  const from = join(shippedPolicies, 'examples', 'impersonation')
  await cp(join(shippedPolicies, 'impersonation.rego'), join(folder, 'impersonation.rego'))
  for (const name of samples) await cp(join(from, `${name}.rego`), join(folder, `${name}.rego`))
  current = await loadPolicies({ path: folder, logger: silentLogger })
}

beforeAll(async () => {
  await use()
  issuer = await startTestIssuer({ policies: { current: () => current } })
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  desk = await issuer.createApplication({ name: 'Support desk' })
  // Role names are unique, so the people share them.
  for (const name of ['customer', 'protected-customer', 'partner', 'support', 'admin']) {
    await issuer.sql('INSERT INTO roles (id, name, description, type) VALUES ($1, $1, $1, $2)', [name, 'User'])
  }
  await issuer.sql(
    `INSERT INTO role_scopes (role_id, scope_id) SELECT 'customer', s.id FROM scopes s JOIN resources r ON r.id = s.resource_id
     WHERE r.indicator = $1`,
    [orders],
  )
})
afterAll(async () => {
  await issuer.close()
  for (const folder of folders) await rm(folder, { recursive: true })
})
beforeEach(() => use())

const person = async (...roles: string[]): Promise<string> => {
  const { id } = await issuer.createUser()
  for (const role of roles) await giveRole(id, role)
  return id
}
const giveRole = (userId: string, role: string) =>
  issuer.sql('INSERT INTO user_roles (user_id, role_id) VALUES ($1, $2)', [userId, role])
const mint = (userId: string, members: object = {}) => issuer.api('POST', '/subject-tokens', { userId, ...members })
const act = async (subjectToken: string, form: Record<string, string> = {}) =>
  issuer.exchange(desk, subjectToken, {
    resource: orders,
    scope: 'read:orders write:orders',
    ...form,
    ...('actor_token' in form && { actor_token_type: accessTokenType }),
  })
const deniedAtMinting = (reason: string) => ({ status: 403, body: { code: 'impersonation.denied', data: { reason } } })
const deniedAtExchange = (reason: string) => ({
  status: 400,
  body: {
    error: 'access_denied',
    reason: 'policy',
    error_description: `The impersonation policy refused this: ${reason}.`,
  },
})

// CVE-2026-109374: an impersonator reached administrators.
test('nobody becomes an administrator: refused at minting, and at exchange when made one in between', async () => {
  const [admin, user] = [await person('admin'), await person('customer')]
  const subjectToken = await issuer.subjectToken(user)
  await use('protected_users')
  expect(await mint(admin)).toMatchObject(deniedAtMinting('protected_user'))
  expect((await mint(user)).status).toBe(201)
  await giveRole(user, 'admin')
  expect(await act(subjectToken)).toMatchObject(deniedAtExchange('protected_user'))
  expect(await issuer.sql('SELECT FROM impersonation_sessions WHERE subject_id = $1', [user])).toEqual([])
})

// CVE-2026-9094: a target outside what the impersonator may reach.
test('support acts for customers, not for partners, and not without saying who acts', async () => {
  const [support, customer, partner] = [await person('support'), await person('customer'), await person('partner')]
  const actor_token = await issuer.actorToken(desk, support)
  const tokens = await Promise.all([customer, customer, partner].map((id) => issuer.subjectToken(id)))
  await use('who_may_act_for_whom')
  expect(await act(tokens[0]!)).toMatchObject(deniedAtExchange('may_not_act_for_this_user'))
  expect((await act(tokens[1]!, { actor_token })).status).toBe(200)
  expect(await act(tokens[2]!, { actor_token })).toMatchObject(deniedAtExchange('may_not_act_for_this_user'))
  expect(await mint(partner, { actorId: support })).toMatchObject(deniedAtMinting('may_not_act_for_this_user'))
})

test('no token without act, and a refusal leaves the subject token usable', async () => {
  const [support, customer] = [await person('support'), await person('customer')]
  const actor_token = await issuer.actorToken(desk, support)
  await use('actor_required')
  const subjectToken = await issuer.subjectToken(customer)
  expect(await act(subjectToken)).toMatchObject(deniedAtExchange('actor_required'))
  const answer = await act(subjectToken, { actor_token })
  expect((await issuer.verify(answer.body.access_token, orders)).act).toEqual({ sub: support })
})

test('an actor that only a subject token proves is not enough', async () => {
  const [support, customer] = [await person('support'), await person('customer')]
  const actor_token = await issuer.actorToken(desk, support)
  await use('actor_signed_in')
  const subjectToken = await issuer.subjectToken(customer)
  expect(await act(subjectToken, { actor_token })).toMatchObject(deniedAtExchange('actor_must_sign_in'))
  await issuer.sql('UPDATE opaque_tokens SET session_id = null WHERE user_id = $1', [support])
  expect((await act(subjectToken, { actor_token })).status).toBe(200)
})

test('nobody acts for themselves', async () => {
  const customer = await person('customer')
  const actor_token = await issuer.actorToken(desk, customer)
  await use('actor_not_subject')
  const subjectToken = await issuer.subjectToken(customer)
  expect(await act(subjectToken, { actor_token })).toMatchObject(deniedAtExchange('actor_is_subject'))
  expect(await mint(customer, { actorId: customer })).toMatchObject(deniedAtMinting('actor_is_subject'))
})

// An actor token that leaked from another application, as CVE-2022-1245 and CVE-2026-56668 are for subject tokens.
test('an actor token that was issued to another client is refused, opaque or JWT', async () => {
  const [support, customer] = [await person('support', 'customer'), await person('customer')]
  const shop = await issuer.createApplication({ name: 'Shop' })
  const jwtOf = async (client: TestApplication) => {
    const form = { resource: orders, scope: 'openid' }
    return (await issuer.exchange(client, await issuer.subjectToken(support), form)).body.access_token as string
  }
  const [foreign, own] = [
    [await issuer.actorToken(shop, support), await jwtOf(shop)],
    [await issuer.actorToken(desk, support), await jwtOf(desk)],
  ]
  await use('actor_token_of_this_client')
  for (const actor_token of foreign) {
    const refused = await act(await issuer.subjectToken(customer), { actor_token })
    expect(refused).toMatchObject(deniedAtExchange('actor_token_of_another_client'))
  }
  for (const actor_token of own) {
    expect((await act(await issuer.subjectToken(customer), { actor_token })).status).toBe(200)
  }
})

test('who acts signs in with a second factor, is told so, and tries again with the same subject token', async () => {
  const [support, customer] = [await person('support'), await person('customer')]
  const staff = await issuer.createApplication({ type: 'SPA' })
  const signedIn = async (acr: Acr) =>
    (await (await authorize(issuer, staff, support, { acr })).redeem()).body.access_token as string
  const weak = await signedIn('urn:surrogate:acr:basic')
  await use('mfa_within_five_minutes')
  const stepUp = {
    reason: 'step_up_required',
    acr_values: 'urn:surrogate:acr:mfa urn:surrogate:acr:phr',
    max_age: 300,
  }
  expect(await mint(customer, { actorToken: weak })).toMatchObject({
    status: 403,
    body: { code: 'impersonation.denied', data: stepUp },
  })
  const subjectToken = await issuer.subjectToken(customer)
  const refused = await act(subjectToken, { actor_token: weak })
  expect(refused).toMatchObject({ status: 400, body: { error: 'access_denied', ...stepUp } })
  expect(await act(subjectToken)).toMatchObject({ body: stepUp })
  const strong = await signedIn('urn:surrogate:acr:mfa')
  expect((await mint(customer, { actorToken: strong })).status).toBe(201)
  expect((await act(subjectToken, { actor_token: strong })).status).toBe(200)
  const old = await signedIn('urn:surrogate:acr:mfa')
  await issuer.sql(`UPDATE authorizations SET authenticated_at = now() - interval '301 seconds' WHERE user_id = $1`, [
    support,
  ])
  expect(await act(await issuer.subjectToken(customer), { actor_token: old })).toMatchObject({ body: stepUp })
})

test('protected customers are asked first, others are not; without their approval nobody does more than read', async () => {
  const [customer, guarded] = [await person('customer'), await person('customer', 'protected-customer')]
  const before = await issuer.subjectToken(guarded)
  await use('approval_for_protected_customers', 'read_only_without_approval')
  expect(await mint(guarded)).toMatchObject({ status: 202, body: { status: 'pending' } })
  expect(await act(before)).toMatchObject({
    status: 400,
    body: { error: 'access_denied', reason: 'approval_required' },
  })
  const answer = await act(await issuer.subjectToken(customer))
  expect(answer.status).toBe(200)
  expect((await issuer.verify(answer.body.access_token, orders))['access']).toBe('read')
})

test('no impersonation without a reason and a ticket, also with a token from before the rule', async () => {
  const customer = await person('customer')
  const before = await issuer.subjectToken(customer)
  await use('reason_required')
  expect(await mint(customer, { ticket: 'T-1' })).toMatchObject(deniedAtMinting('reason_required'))
  expect(await mint(customer, { reason: 'wrong invoice' })).toMatchObject(deniedAtMinting('ticket_required'))
  expect(await act(before)).toMatchObject(deniedAtExchange('reason_required'))
  const subjectToken = await issuer.subjectToken(customer, { reason: 'wrong invoice', ticket: 'T-1' })
  expect((await act(subjectToken)).status).toBe(200)
})

test('who acts may look, not touch, and not for long', async () => {
  const customer = await person('customer')
  await use('read_only', 'shorter_life')
  const answer = await act(await issuer.subjectToken(customer))
  expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders', expires_in: 900 } })
  const { scope, iat, exp, sid } = await issuer.verify(answer.body.access_token, orders)
  expect({ scope, life: exp! - iat! }).toEqual({ scope: 'read:orders', life: 900 })
  expect((await issuer.api('GET', `/impersonations/${sid}`)).body.scopes).toEqual(['read:orders'])
})

test('nobody is reached across organizations', async () => {
  const [support, customer, stranger] = [await person('support'), await person('customer'), await person('customer')]
  const organizations = ['acme', 'other'].map((name) => ({ id: `${name}-${support.slice(0, 6)}`, name }))
  for (const { id, name } of organizations)
    await issuer.sql('INSERT INTO organizations (id, name) VALUES ($1, $2)', [id, name])
  const [acme, other] = organizations.map(({ id }) => id)
  for (const [organization, user] of [
    [acme, support],
    [acme, customer],
    [other, customer],
    [other, stranger],
  ])
    await issuer.sql('INSERT INTO organization_users (organization_id, user_id) VALUES ($1, $2)', [organization, user])
  const [actor_token = ''] = [await issuer.actorToken(desk, support)]
  await use('same_organization')
  expect((await act(await issuer.subjectToken(customer), { actor_token })).status).toBe(200)
  const across = await act(await issuer.subjectToken(stranger), { actor_token })
  expect(across).toMatchObject(deniedAtExchange('no_common_organization'))
  expect(await mint(stranger, { actorId: support })).toMatchObject(deniedAtMinting('no_common_organization'))
  const elsewhere = await act(await issuer.subjectToken(customer), { actor_token, organization_id: other! })
  expect(elsewhere).toMatchObject(deniedAtExchange('actor_outside_organization'))
})

test('every sample is used here', async () => {
  const names = await readdir(join(shippedPolicies, 'examples', 'impersonation'))
  const here = await readFile(import.meta.filename, 'utf8')
  for (const name of names.filter((one) => !one.endsWith('_test.rego'))) {
    expect(here).toContain(`'${name.replace(/\.rego$/, '')}'`)
  }
})
