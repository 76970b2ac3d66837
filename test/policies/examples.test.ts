import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkRules, testRules } from '../../policies/authoring/check.ts'
import { shippedPolicies } from '../../policies/decide.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { readSources } from '../../policies/engine/compile/sources.ts'
import { decideImpersonation, type ImpersonationInput } from '../../policies/impersonation.ts'
import { policiesOf, ruleFolder } from './rule-folder.ts'

/**
 * The samples for impersonation, as an operator uses them: copied beside impersonation.rego, one of them or several.
 */

const folder = join(shippedPolicies, 'examples', 'impersonation')
const names = (await readdir(folder)).filter((name) => !name.endsWith('_test.rego')).map((name) => name.slice(0, -5))

const fileOf = async (name: string) => [name.split('/').at(-1)!, await readFile(join(shippedPolicies, name), 'utf8')]

/** `impersonation.rego` and these samples. */
const filesWith = async (samples: readonly string[], { tests = false } = {}): Promise<Record<string, string>> => {
  const rules = ['impersonation', ...samples.map((name) => `examples/impersonation/${name}`)]
  const suffixes = tests ? ['.rego', '_test.rego'] : ['.rego']
  return Object.fromEntries(
    await Promise.all(rules.flatMap((name) => suffixes.map((suffix) => fileOf(`${name}${suffix}`)))),
  )
}

const checked = async (samples: readonly string[]) => {
  const sources = await readSources(await ruleFolder(await filesWith(samples, { tests: true })), { tests: true })
  const opa = await findOpa()
  expect(await checkRules({ sources, opa })).toEqual([])
  return testRules({ sources, opa })
}

test('they pass their tests beside each other and beside those of the shipped file, and have no mistakes', async () => {
  const { passed, report } = await checked(names)
  expect(passed, report).toBe(true)
})

test.each(names)('%s passes its tests alone', async (name) => {
  const { passed, report } = await checked([name])
  expect(passed, report).toBe(true)
})

const acting: ImpersonationInput = {
  version: 1,
  stage: 'exchange',
  subject: { id: 'u1', roles: ['customer'], isSuspended: false, organizations: ['acme'], customData: {} },
  actor: {
    id: 'a1',
    roles: ['support'],
    organizations: ['acme', 'help'],
    via: 'sign_in',
    clientId: 'desk',
    chain: ['a1'],
  },
  client: { id: 'desk', type: 'Traditional', name: 'Support desk' },
  creator: { clientId: 'backend' },
  resource: 'https://api.example.test/orders',
  scopes: ['read:orders', 'write:orders'],
  reason: 'wrong invoice',
  ticket: 'T-1',
  context: {},
  now: 1_767_225_600,
}
const { actor: _actor, ...alone } = acting
const { reason: _reason, ...unexplained } = acting
const { subject, actor } = acting as Required<ImpersonationInput>

describe('what each of them decides', async () => {
  const allowed = { allow: true }
  const denied = (reason: string) => ({ allow: false, reason })
  const stepUp = {
    ...denied('step_up_required'),
    acr_values: ['urn:surrogate:acr:mfa', 'urn:surrogate:acr:phr'],
    max_age: 300,
  }
  const cases: Record<string, [input: ImpersonationInput, decision: object][]> = {
    protected_users: [
      [acting, allowed],
      [{ ...acting, subject: { ...subject, roles: ['admin'] } }, denied('protected_user')],
      [
        { ...acting, stage: 'mint', subject: { ...subject, customData: { protected: true } } },
        denied('protected_user'),
      ],
    ],
    who_may_act_for_whom: [
      [acting, allowed],
      [{ ...acting, actor: { ...actor, roles: ['customer'] } }, denied('may_not_act_for_this_user')],
      [{ ...acting, subject: { ...subject, roles: ['partner'] } }, denied('may_not_act_for_this_user')],
      [alone, denied('may_not_act_for_this_user')],
      [{ ...alone, stage: 'mint' }, allowed],
    ],
    actor_required: [
      [acting, allowed],
      [alone, denied('actor_required')],
      [{ ...alone, stage: 'mint' }, allowed],
    ],
    actor_signed_in: [
      [acting, allowed],
      [alone, allowed],
      [{ ...acting, actor: { ...actor, via: 'subject_token' } }, denied('actor_must_sign_in')],
    ],
    actor_not_subject: [
      [acting, allowed],
      [{ ...acting, actor: { ...actor, id: 'u1', chain: ['u1'] } }, denied('actor_is_subject')],
      [{ ...acting, actor: { ...actor, chain: ['a1', 'u1'] } }, denied('actor_is_subject')],
    ],
    same_organization: [
      [acting, allowed],
      [{ ...acting, actor: { ...actor, organizations: ['help'] } }, denied('no_common_organization')],
      [{ ...acting, subject: { ...subject, organizations: [] } }, denied('no_common_organization')],
      [alone, denied('no_common_organization')],
      [{ ...alone, stage: 'mint' }, allowed],
      [{ ...acting, organization: { id: 'acme' } }, allowed],
      [
        { ...acting, subject: { ...subject, organizations: ['acme', 'other'] }, organization: { id: 'other' } },
        denied('actor_outside_organization'),
      ],
    ],
    actor_token_of_this_client: [
      [acting, allowed],
      [alone, allowed],
      [{ ...acting, actor: { ...actor, clientId: 'shop' } }, denied('actor_token_of_another_client')],
    ],
    mfa_within_five_minutes: [
      [{ ...acting, actor: { ...actor, acr: 'urn:surrogate:acr:mfa', auth_time: acting.now - 300 } }, allowed],
      [{ ...acting, actor: { ...actor, acr: 'urn:surrogate:acr:mfa', auth_time: acting.now - 301 } }, stepUp],
      [{ ...acting, actor: { ...actor, acr: 'urn:surrogate:acr:basic', auth_time: acting.now } }, stepUp],
      [acting, stepUp],
      [alone, stepUp],
      [{ ...alone, stage: 'mint' }, allowed],
    ],
    approval_for_protected_customers: [
      [acting, allowed],
      [
        { ...acting, stage: 'mint', subject: { ...subject, roles: ['protected-customer'] } },
        { allow: true, require: ['approval'] },
      ],
    ],
    read_only_without_approval: [
      [acting, { allow: true, readOnly: true }],
      [{ ...acting, approval: { id: 'r1', at: acting.now, readOnly: false } }, allowed],
    ],
    reason_required: [
      [acting, allowed],
      [unexplained, denied('reason_required')],
      [{ ...acting, ticket: 'mine' }, denied('ticket_required')],
    ],
    read_only: [
      [acting, { allow: true, scopes: ['read:orders'] }],
      [{ ...acting, actor: { ...actor, roles: ['support-lead'] } }, allowed],
    ],
    shorter_life: [
      [acting, { allow: true, maxTtl: 900 }],
      [
        { ...acting, subject: { ...subject, roles: ['vip'] } },
        { allow: true, maxTtl: 300 },
      ],
    ],
  }

  test('is written down for every one of them', () => {
    expect(Object.keys(cases).sort()).toEqual(names.toSorted())
  })

  test.each(Object.entries(cases))('%s', async (name, rows) => {
    const set = await policiesOf(await filesWith([name]))
    for (const [input, decision] of rows) expect(decideImpersonation(set, input)).toEqual(decision)
  })

  test('all of them together: every objection counts, and what is left is less of everything', async () => {
    const set = await policiesOf(await filesWith(names))
    const signedIn = { ...acting, actor: { ...actor, acr: 'urn:surrogate:acr:mfa', auth_time: acting.now } }
    const less = { allow: true, scopes: ['read:orders'], maxTtl: 900, readOnly: true }
    expect(decideImpersonation(set, signedIn)).toEqual(less)
    const wrong = { ...unexplained, subject: { ...subject, id: 'a1', roles: ['admin'] } }
    expect(decideImpersonation(set, wrong)).toEqual(denied('actor_is_subject'))
  })
})

test('they are no part of the shipped bundle', async () => {
  expect([...(await readSources(shippedPolicies)).keys()].filter((name) => name.startsWith('examples'))).toEqual([])
})
