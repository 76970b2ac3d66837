import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { checkRules, testRules } from '../../policies/authoring/check.ts'
import { loadPolicies, PolicyError, shippedPolicies } from '../../policies/decide.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { readSources } from '../../policies/engine/compile/sources.ts'
import { inputSchemas } from '../../policies/schemas.ts'
import { askSignInRules, type SignInInput, signInInputSchema } from '../../policies/sign-in.ts'
import { policiesOf, ruleFolder } from './rule-folder.ts'

const customer: SignInInput = {
  version: 1,
  stage: 'mfa',
  client: { id: 'c1', name: 'Shop', type: 'SPA', isThirdParty: false },
  subject: { id: 'u1', roles: ['customer'], organizations: [] },
  factors: { available: [], used: ['password'] },
  amr: ['pwd'],
  acr: 'urn:surrogate:acr:basic',
  ip: '203.0.113.9',
  device: { known: true },
  failures: 0,
  // A Wednesday, 13 o'clock in Berlin.
  now: 1_767_787_200,
  settings: {
    mfa: { policy: 'PromptAtSignInAndSignUp', factors: ['totp'], organizationPolicy: 'NoPrompt', organizations: [] },
  },
}
const withRoles = (...roles: string[]): SignInInput => ({ ...customer, subject: { ...customer.subject!, roles } })
const { subject: _subject, ...nobody } = { ...customer, stage: 'prove' as const }

const allowed = (...require: string[]) => ({ allow: true, require, session: {} })
const denied = (reason: string) => ({ allow: false, reason, require: [], session: {} })

const rules = (decision: string) =>
  policiesOf({ 'a.rego': `package surrogate.signin\n\n# METADATA\n# entrypoint: true\ndecision := ${decision}\n` })

describe('the shipped rules', async () => {
  const set = await loadPolicies({ path: shippedPolicies, logger: silentLogger })
  const mandatory = { ...customer.settings, mfa: { ...customer.settings.mfa, policy: 'Mandatory' as const } }
  const ofSession = { stage: 'session' as const, factors: { available: ['totp'], used: [] } }
  const ofAcme = {
    mfa: { ...customer.settings.mfa, organizationPolicy: 'Mandatory' as const, organizations: ['acme'] },
  }

  test.each<[what: string, input: SignInInput, decision: object]>([
    ['let somebody without a second factor in', customer, allowed()],
    [
      'ask for the factor that somebody has',
      { ...customer, factors: { available: ['totp'], used: [] } },
      allowed('mfa'),
    ],
    ['ask nobody for it before they are known', { ...nobody, settings: mandatory }, allowed()],
    ['make people enrol where the settings do', { ...customer, settings: mandatory }, allowed('mfa', 'enrol')],
    ['make members of some organizations enrol', { ...customer, settings: ofAcme }, allowed('mfa', 'enrol')],
    ['ask nothing of a session', { ...customer, ...ofSession, settings: mandatory }, allowed()],
    ['say the same at the end', { ...customer, stage: 'finish', settings: mandatory }, allowed('mfa', 'enrol')],
  ])('%s', (_, input, decision) => {
    expect(signInInputSchema.parse(input)).toEqual(input)
    expect(askSignInRules(set, input)).toEqual(decision)
  })

  test('give no decision about an input of another version', () => {
    expect(() => askSignInRules(set, { ...customer, version: 2 } as never)).toThrow(PolicyError)
  })
})

describe('what rules answer', () => {
  test('may be a bare true', async () => expect(askSignInRules(await rules('true'), customer)).toEqual(allowed()))

  test('is asked for in one order, each once', async () => {
    const set = await rules(`{"allow": true, "require": ["enrol", "mfa", "captcha", "mfa"], "session": {"idle": 60}}`)
    expect(askSignInRules(set, customer)).toEqual({
      allow: true,
      require: ['captcha', 'mfa', 'enrol'],
      session: { idle: 60 },
    })
  })

  test.each([
    'false',
    '"yes"',
    '{}',
    '{"allow": "true"}',
    '{"allow": true, "require": ["mfas"]}',
    '{"allow": true, "requires": ["mfa"]}',
    '{"allow": true, "require": {"mfa"}} if input.stage == "other"',
    '{"allow": true, "session": {"idle": 0}}',
    '{"allow": true, "session": {"idle": 1.5}}',
    '{"allow": false, "reason": 7}',
  ])('%s is an error, never a permission', async (decision) => {
    const set = await rules(decision)
    expect(() => askSignInRules(set, customer)).toThrow(PolicyError)
  })

  test('is an error where the set says nothing about signing in', async () => {
    const set = await policiesOf({ 'a.rego': 'package other\n\n# METADATA\n# entrypoint: true\ndecision := true\n' })
    expect(() => askSignInRules(set, customer)).toThrow(PolicyError)
  })
})

/** The samples, as an operator uses them: copied beside signin.rego, one of them or several. */
const folder = join(shippedPolicies, 'examples', 'signin')
const names = (await readdir(folder)).filter((name) => !name.endsWith('_test.rego')).map((name) => name.slice(0, -5))

const filesWith = async (samples: readonly string[], { tests = false } = {}): Promise<Record<string, string>> => {
  const paths = ['signin', ...samples.map((name) => `examples/signin/${name}`)]
  const suffixes = tests ? ['.rego', '_test.rego'] : ['.rego']
  const files: Record<string, string> = {}
  for (const path of paths.flatMap((each) => suffixes.map((suffix) => each + suffix)))
    files[path.split('/').at(-1)!] = await readFile(join(shippedPolicies, path), 'utf8')
  return files
}

describe('the samples', () => {
  const checked = async (samples: readonly string[]) => {
    const sources = await readSources(await ruleFolder(await filesWith(samples, { tests: true })), { tests: true })
    const opa = await findOpa()
    expect(await checkRules({ sources, opa })).toEqual([])
    return testRules({ sources, opa })
  }

  test('pass their tests beside each other and beside those of the shipped file, and have no mistakes', async () => {
    const { passed, report } = await checked(names)
    expect(passed, report).toBe(true)
  })

  test.each(names)('%s passes its tests alone', async (name) => {
    const { passed, report } = await checked([name])
    expect(passed, report).toBe(true)
  })

  const backOffice = { ...customer, client: { ...customer.client, name: 'Back office' } }
  const saturday = 1_768_046_400
  const cases: Record<string, [input: SignInInput, decision: object][]> = {
    office_hours: [
      [backOffice, allowed()],
      [{ ...backOffice, now: saturday }, denied('outside_office_hours')],
      [{ ...customer, now: saturday }, allowed()],
      [{ ...backOffice, stage: 'session', now: saturday }, denied('outside_office_hours')],
    ],
    network: [
      [customer, allowed()],
      [withRoles('admin'), denied('network_not_allowed')],
      [{ ...withRoles('admin'), ip: '192.0.2.1' }, allowed()],
    ],
    mfa_for_roles: [
      [customer, allowed()],
      [withRoles('support'), allowed('mfa', 'enrol')],
      [{ ...withRoles('support'), factors: { available: ['totp'], used: ['password'] } }, allowed('mfa')],
    ],
    passkey_for_admins: [
      [customer, allowed()],
      [withRoles('admin'), allowed('phr')],
      [{ ...withRoles('admin'), stage: 'session' }, allowed('phr')],
    ],
    countries: [
      [{ ...nobody, country: 'kp' }, denied('country_not_allowed')],
      [{ ...customer, country: 'DE' }, allowed()],
    ],
    new_device: [
      [customer, allowed()],
      [{ ...nobody, device: { known: false } }, allowed('captcha')],
      [{ ...customer, failures: 3 }, allowed('mfa')],
    ],
    short_sessions: [
      [customer, allowed()],
      [withRoles('support'), { allow: true, require: [], session: { idle: 1800, absolute: 28800 } }],
      [
        { ...withRoles('support'), client: { ...customer.client, isThirdParty: true } },
        { allow: true, require: [], session: { idle: 1800, absolute: 14400 } },
      ],
    ],
  }

  test('have their decisions written down, every one', () => {
    expect(Object.keys(cases).sort()).toEqual(names.toSorted())
  })

  test.each(Object.entries(cases))('%s', async (name, rows) => {
    const set = await policiesOf(await filesWith([name]))
    for (const [input, decision] of rows) expect(askSignInRules(set, input)).toEqual(decision)
  })
})

test('misspelt input is found in any file of the package, though it compiles', async () => {
  const sources = await readSources(
    await ruleFolder({
      ...(await filesWith([])),
      'own.rego': 'package surrogate.signin\n\ndeny contains "x" if input.devise.known\n',
    }),
  )
  expect(await checkRules({ sources, opa: await findOpa() })).toEqual([
    { file: 'own.rego', line: 3, column: 22, message: 'undefined ref: input.devise.known' },
  ])
})

describe('docs/sign-in-rules.md', async () => {
  const page = await readFile(new URL('../../docs/sign-in-rules.md', import.meta.url), 'utf8')
  const blocks = (language: string) =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text]) => text!)

  test('has rules without mistakes', async () => {
    const own = blocks('rego')
    expect(own).not.toEqual([])
    const files = Object.fromEntries(own.map((text, index) => [`own_${index}.rego`, text]))
    const sources = await readSources(await ruleFolder({ ...(await filesWith([])), ...files }))
    expect(await checkRules({ sources, opa: await findOpa() })).toEqual([])
  })

  test('shows an input as it is', () => {
    const [input] = blocks('json')
    expect(signInInputSchema.safeParse(JSON.parse(input!))).toMatchObject({ success: true })
  })

  test('has every sample', () => {
    const listed = [...page.matchAll(/^\| `(\w+)\.rego` \|/gm)].map(([, name]) => name)
    expect(listed.toSorted()).toEqual(names.toSorted())
  })
})

test('signin-input-schema.json describes the input', async () => {
  const committed = JSON.parse(await readFile(join(shippedPolicies, 'signin-input-schema.json'), 'utf8'))
  expect(committed).toEqual(JSON.parse(JSON.stringify(inputSchemas.signin)))
})
