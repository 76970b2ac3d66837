import { expect, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, PolicyError, shippedPolicies } from '../../policies/decide.ts'
import { decideImpersonation, type ImpersonationInput, impersonationInputSchema } from '../../policies/impersonation.ts'
import { policiesOf } from './rule-folder.ts'

const input: ImpersonationInput = {
  version: 1,
  stage: 'exchange',
  subject: { id: 'u1', roles: ['customer'], isSuspended: false, organizations: [], customData: {} },
  actor: { id: 's1', roles: ['support'], organizations: [], chain: ['s1'] },
  client: { id: 'c1', type: 'SPA', name: 'Support desk' },
  creator: { clientId: 'backend' },
  resource: 'https://api.example.test/orders',
  scopes: ['read:orders', 'write:orders'],
  context: { ticketId: 'T-1' },
  now: 1_767_225_600,
}

const rules = (decision: string) =>
  policiesOf({
    'a.rego': `package surrogate.impersonation\n\n# METADATA\n# entrypoint: true\ndecision := ${decision}\n`,
  })

test('the shipped policy allows minting and exchange', async () => {
  const set = await loadPolicies({ path: shippedPolicies, logger: silentLogger })
  expect(impersonationInputSchema.safeParse(input).success).toBe(true)
  expect(decideImpersonation(set, input)).toEqual({ allow: true })
  expect(decideImpersonation(set, { ...input, stage: 'mint' })).toEqual({ allow: true })
})

test('a policy may refuse, step down to fewer scopes and shorten the life', async () => {
  const set = await rules(
    `{"allow": input.subject.roles != ["admin"], "reason": "protected", "scopes": ["read:orders"], "maxTtl": 300}`,
  )
  expect(decideImpersonation(set, input)).toEqual({
    allow: true,
    reason: 'protected',
    scopes: ['read:orders'],
    maxTtl: 300,
  })
  const admin = { ...input, subject: { ...input.subject, roles: ['admin'] } }
  expect(decideImpersonation(set, admin)).toMatchObject({ allow: false, reason: 'protected' })
})

test.each(['false', '"yes"', '{"allow": "true"}', '{"allow": true, "maxTtl": 0}', '{"allow": true, "scope": []}'])(
  'no answer, a broken one, or %s is an error, never a permission',
  async (decision) => {
    const set = await rules(decision)
    expect(() => decideImpersonation(set, input)).toThrow(PolicyError)
  },
)

test('a policy cannot add scopes', async () => {
  const set = await rules('{"allow": true, "scopes": ["read:orders", "delete:orders"]}')
  expect(() => decideImpersonation(set, input)).toThrow(/not asked for/)
})

test('without an impersonation policy in the set there is no permission', async () => {
  const set = await policiesOf({ 'a.rego': 'package other\n\n# METADATA\n# entrypoint: true\ndecision := true\n' })
  expect(() => decideImpersonation(set, input)).toThrow(PolicyError)
})
