import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { silentLogger } from '../../../../platform/logger.ts'
import { loadPolicies, type PolicySet } from '../../../../policies/policy-set.ts'
import { accessTokenType, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { linesDuring } from '../../../support/log-lines.ts'

const rules = `package surrogate.impersonation

# METADATA
# entrypoint: true
decision := {"allow": false, "reason": "protected"} if {
	"protected" in input.subject.roles
} else := {"allow": false, "reason": "no reason given"} if {
	not input.reason
} else := {"allow": false, "reason": "actor required"} if {
	input.stage == "exchange"
	input.subject.customData.vip
	not input.actor
} else := {"allow": true, "scopes": [s | some s in input.scopes; startswith(s, "read:")], "maxTtl": 60} if {
	input.context.readOnly
} else := {"allow": "perhaps"} if {
	input.ticket == "break it"
} else := {"allow": true}
`

let issuer: TestIssuer
let folder: string
let current: PolicySet
const questions: unknown[] = []
let orders: string
let client: TestApplication
let agent: { id: string }
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-policies-'))
  await writeFile(join(folder, 'impersonation.rego'), rules)
  const loaded = await loadPolicies({ path: folder, logger: silentLogger })
  current = {
    ...loaded,
    evaluate(entrypoint, input) {
      questions.push(input)
      return loaded.evaluate(entrypoint, input)
    },
  }
  issuer = await startTestIssuer({ policies: { current: () => current } })
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  client = await issuer.createApplication({ name: 'Support desk' })
  agent = await issuer.createUser()
})
afterAll(async () => {
  await issuer.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  questions.length = 0
})

const mint = (userId: string, members: object = { reason: 'asked to' }) =>
  issuer.api('POST', '/subject-tokens', { userId, ...members })

test('a protected user cannot be impersonated: refused at minting, and at exchange when protected since', async () => {
  const user = await issuer.createUser()
  const minted = await mint(user.id)
  expect(minted.status).toBe(201)
  await issuer.grantUser(user.id, orders, ['read:orders'], 'protected')
  expect(await mint(user.id)).toMatchObject({
    status: 403,
    body: { code: 'impersonation.denied', data: { reason: 'protected' } },
  })
  const refused = await issuer.exchange(client, minted.body.subjectToken, { resource: orders })
  expect(refused).toMatchObject({ status: 400, body: { error: 'access_denied', reason: 'policy' } })
  expect(refused.body.error_description).toContain('protected')
})

test('a reason can be demanded', async () => {
  const user = await issuer.createUser()
  expect(await mint(user.id, {})).toMatchObject({ status: 403, body: { data: { reason: 'no reason given' } } })
})

test('an actor can be demanded, and a refusal leaves the subject token usable', async () => {
  const user = await issuer.createUser({ customData: { vip: true } })
  const { subjectToken } = (await mint(user.id)).body
  expect(await issuer.exchange(client, subjectToken, { resource: orders })).toMatchObject({
    status: 400,
    body: { error: 'access_denied', reason: 'policy' },
  })
  const actor_token = await issuer.exchange(client, (await mint(agent.id)).body.subjectToken, { scope: 'openid' })
  const form = { resource: orders, actor_token: actor_token.body.access_token, actor_token_type: accessTokenType }
  expect((await issuer.exchange(client, subjectToken, form)).status).toBe(200)
})

test('a policy can take scopes away and shorten the token', async () => {
  const user = await issuer.createUser()
  await issuer.grantUser(user.id, orders, ['read:orders', 'write:orders'])
  const { subjectToken } = (await mint(user.id, { reason: 'look', context: { readOnly: true } })).body
  const answer = await issuer.exchange(client, subjectToken, { resource: orders, scope: 'write:orders read:orders' })
  expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders', expires_in: 60 } })
  const { scope, iat, exp, sid } = await issuer.verify(answer.body.access_token, orders)
  expect({ scope, life: exp! - iat! }).toEqual({ scope: 'read:orders', life: 60 })
  expect(await issuer.sql('SELECT scopes FROM impersonation_sessions WHERE id = $1', [sid])).toEqual([
    { scopes: ['read:orders'] },
  ])
})

test('a policy without a usable answer is 503 at both stages, never an allow', async () => {
  const user = await issuer.createUser()
  const broken = { reason: 'test', ticket: 'break it' }
  expect(await mint(user.id, broken)).toMatchObject({ status: 503, body: { code: 'impersonation.policy_unavailable' } })
  const { subjectToken } = (await mint(user.id)).body
  await issuer.sql(`UPDATE subject_tokens SET ticket = 'break it' WHERE user_id = $1`, [user.id])
  expect(await issuer.exchange(client, subjectToken, { resource: orders })).toMatchObject({
    status: 503,
    body: { error: 'temporarily_unavailable' },
  })
  await issuer.sql(`UPDATE subject_tokens SET ticket = null WHERE user_id = $1`, [user.id])
  expect((await issuer.exchange(client, subjectToken, { resource: orders })).status).toBe(200)
})

test('a policy without a usable answer that is asked over and over does not fill the log', async () => {
  const user = await issuer.createUser()
  const broken = { reason: 'test', ticket: 'break it' }
  const { lines, count, most } = await linesDuring(
    issuer,
    'the impersonation policy could not be evaluated',
    async () => {
      for (let n = 0; n < 30; n++) expect((await mint(user.id, broken)).status).toBe(503)
    },
  )
  expect(lines).toHaveLength(count)
  expect(count).toBeLessThanOrEqual(most)
})

test('a policy is told everything about both stages', async () => {
  const user = await issuer.createUser({ customData: { plan: 'gold' } })
  await issuer.grantUser(user.id, orders, ['read:orders'], 'buyer')
  await issuer.grantUser(agent.id, orders, ['write:orders'], 'support')
  const organization = (await issuer.api('POST', '/organizations', { name: 'Acme' })).body
  const other = (await issuer.api('POST', '/organizations', { name: 'Support' })).body
  await issuer.api('POST', `/organizations/${organization.id}/users`, { userIds: [user.id] })
  await issuer.api('POST', `/organizations/${other.id}/users`, { userIds: [agent.id] })
  const actor = await issuer.exchange(client, (await mint(agent.id)).body.subjectToken, { scope: 'openid' })
  questions.length = 0

  const members = {
    clientId: client.id,
    actorId: agent.id,
    resource: orders,
    scopes: ['read:orders'],
    reason: 'wrong invoice',
    ticket: 'T-1',
    context: { channel: 'phone' },
  }
  const { subjectToken } = (await mint(user.id, members)).body
  const form = { resource: orders, scope: 'read:orders', actor_token: actor.body.access_token }
  await issuer.exchange(client, subjectToken, { ...form, actor_token_type: accessTokenType })

  const common = {
    version: 1,
    subject: {
      id: user.id,
      isSuspended: false,
      roles: ['buyer'],
      organizations: [organization.id],
      customData: { plan: 'gold' },
    },
    client: { id: client.id, type: 'Traditional', name: 'Support desk' },
    creator: { clientId: issuer.bootstrap.id },
    resource: orders,
    scopes: ['read:orders'],
    reason: 'wrong invoice',
    ticket: 'T-1',
    context: { channel: 'phone' },
    now: expect.any(Number),
  }
  const acting = { id: agent.id, roles: ['support'], organizations: [other.id] }
  expect(questions).toEqual([
    { ...common, stage: 'mint', actor: { ...acting, chain: [agent.id] } },
    {
      ...common,
      stage: 'exchange',
      actor: { ...acting, via: 'subject_token', clientId: client.id, chain: [agent.id] },
    },
  ])
})

test('a policy is told which organization the token is to count in', async () => {
  const user = await issuer.createUser()
  const organization = (await issuer.api('POST', '/organizations', { name: 'Acme' })).body
  await issuer.api('POST', `/organizations/${organization.id}/users`, { userIds: [user.id] })
  const exchange = async (form: object) =>
    issuer.exchange(client, (await mint(user.id)).body.subjectToken, { organization_id: organization.id, ...form })
  questions.length = 0
  expect((await exchange({})).status).toBe(200)
  expect((await exchange({ resource: orders })).status).toBe(200)
  const asked = { stage: 'exchange', organization: { id: organization.id } }
  expect((questions as { stage: string }[]).filter(({ stage }) => stage === 'exchange')).toEqual([
    expect.objectContaining({ ...asked, resource: `urn:logto:organization:${organization.id}` }),
    expect.objectContaining({ ...asked, resource: orders }),
  ])
})
