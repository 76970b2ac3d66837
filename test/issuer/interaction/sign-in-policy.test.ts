import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openImpersonationPolicies, openSignInShadow } from '../../../bin/parts/impersonation-policies.ts'
import { createSignInPolicy, type SignInQuestion } from '../../../issuer/interaction/sign-in-policy.ts'
import { createHealth } from '../../../platform/health.ts'
import { createLifecycle } from '../../../platform/lifecycle.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { shippedPolicies } from '../../../policies/decide.ts'
import { ruleFolder, writeFiles } from '../../policies/rule-folder.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { until } from '../../support/until.ts'

const shippedFile = (name: string) => readFile(join(shippedPolicies, name), 'utf8')
const impersonation = await shippedFile('impersonation.rego')
const signIn = await shippedFile('signin.rego')
const own = (line: string) => `package surrogate.signin\n\n${line}\n`

const question: SignInQuestion = {
  stage: 'mfa',
  client: { id: 'c1', name: 'Shop', type: 'SPA', isThirdParty: false },
  subject: { id: 'u1', roles: ['customer'], organizations: [] },
  factors: { available: [], used: ['password'] },
  amr: ['pwd'],
  acr: 'urn:surrogate:acr:basic',
  ip: '203.0.113.9',
  device: { known: false },
  failures: 0,
  now: 1_767_225_600,
  settings: {
    mfa: { policy: 'Mandatory', factors: ['totp'], organizationPolicy: 'NoPrompt', organizations: [] },
  },
}
const enrolled = { allow: true, require: ['mfa', 'enrol'], session: {} }
const unavailable = expect.objectContaining({ code: 'server.unavailable', status: 503 })

/** The policies of a folder as the issuer follows and asks them. */
const following = async (files: Record<string, string>) => {
  const folder = await ruleFolder(files)
  const { logger, lines } = capturedLogger()
  const lifecycle = createLifecycle({ logger })
  onTestFinished(() => lifecycle.stop())
  const metrics = createMetrics()
  const service = { logger, lifecycle, health: createHealth(), metrics, fail() {} }
  const policies = await openImpersonationPolicies(service, folder, undefined)
  const policy = await createSignInPolicy({ policies, logger, metrics })
  return {
    folder,
    policies,
    policy,
    lines,
    metrics,
    change: (next: Record<string, string>) => writeFiles(folder, next),
  }
}

test('without rules of the operator the shipped ones decide', async () => {
  const { logger } = capturedLogger()
  const policy = await createSignInPolicy({ logger, metrics: createMetrics() })
  expect(policy.decideSignIn(question)).toEqual(enrolled)
  expect(policy.rules()).toEqual({ revision: expect.any(String), isShipped: true })
  expect(policy.asksOwnRules()).toBe(false)
})

test('a folder from before there were sign-in rules goes on working, with the shipped ones', async () => {
  const { policy, change } = await following({ 'impersonation.rego': impersonation })
  expect(policy.decideSignIn(question)).toEqual(enrolled)
  expect(policy.rules().isShipped).toBe(true)
  // Once they are there, they count.
  await change({ 'signin.rego': signIn, 'own.rego': own('deny contains "not_today"') })
  await until(() => expect(policy.decideSignIn(question)).toMatchObject({ allow: false, reason: 'not_today' }))
  expect(policy.rules().isShipped).toBe(false)
  expect(policy.asksOwnRules()).toBe(true)
})

test('a reload that fails keeps the last good rules', async () => {
  const { policy, policies, change } = await following({
    'impersonation.rego': impersonation,
    'signin.rego': signIn,
    'own.rego': own('require contains "phr"'),
  })
  const strict = { allow: true, require: ['mfa', 'phr', 'enrol'], session: {} }
  expect(policy.decideSignIn(question)).toEqual(strict)
  await change({ 'own.rego': own('require contains nonsense') })
  await until(() => expect(policies.status().lastError).toContain('own.rego:3'))
  expect(policy.decideSignIn(question)).toEqual(strict)
})

test('rules that were in force are not lost with their file: the shipped ones do not take their place', async () => {
  const { folder, policy, policies } = await following({
    'impersonation.rego': impersonation,
    'signin.rego': signIn,
    'own.rego': own('deny contains "never"'),
  })
  await rm(join(folder, 'signin.rego'))
  await rm(join(folder, 'own.rego'))
  await until(() => expect(policies.status().lastError).toContain('surrogate/signin/decision'))
  expect(policy.decideSignIn(question)).toMatchObject({ allow: false, reason: 'never' })
})

test('rules that nobody would ask are an error at the start', async () => {
  const files = { 'impersonation.rego': impersonation, 'own.rego': own('deny contains "never"') }
  await expect(following(files)).rejects.toThrow('the policies lack these entrypoints: surrogate/signin/decision')
})

test('rules that give no decision are 503 and are told in the log, and whoever may skip them is let in', async () => {
  const { policy, lines, metrics } = await following({
    'impersonation.rego': impersonation,
    'own.rego': own('# METADATA\n# entrypoint: true\ndecision := {"allow": true} if input.stage == "finish"'),
  })
  expect(() => policy.decideSignIn(question)).toThrow(unavailable)
  expect(lines).toContainEqual(
    expect.objectContaining({ stage: 'mfa', msg: 'the sign-in rules could not be evaluated' }),
  )
  expect(policy.decideSignIn({ ...question, stage: 'finish' })).toEqual({ allow: true, require: [], session: {} })
  expect(policy.decideSignIn(question, { shipped: true })).toEqual(enrolled)
  const { text } = await metrics.render()
  expect(text).toContain('surrogate_sign_in_decisions_total{stage="mfa",outcome="error"} 1')
})

test('shadow rules are compared and counted, told in the log, and never obeyed', async () => {
  const folder = await ruleFolder({
    'signin.rego': signIn,
    'own.rego': own('deny contains "later" if input.stage == "mfa"'),
  })
  const { logger, lines } = capturedLogger()
  const lifecycle = createLifecycle({ logger })
  onTestFinished(() => lifecycle.stop())
  const metrics = createMetrics()
  const service = { logger, lifecycle, health: createHealth(), metrics, fail() {} }
  const shadow = await openSignInShadow(service, folder, undefined)
  const policy = await createSignInPolicy({ shadow, logger, metrics })
  // They are told what the shipped ones need not know.
  expect([policy.rules().isShipped, policy.asksOwnRules()]).toEqual([true, true])
  const counted = async (stage: string, outcome: string) =>
    expect((await metrics.render()).text).toContain(
      `surrogate_sign_in_shadow_decisions_total{stage="${stage}",outcome="${outcome}"} 1`,
    )

  expect(policy.decideSignIn({ ...question, stage: 'finish' })).toEqual(enrolled)
  await until(() => counted('finish', 'same'))
  expect(policy.decideSignIn(question)).toEqual(enrolled)
  await until(() => counted('mfa', 'different'))
  expect(lines).toContainEqual(
    expect.objectContaining({
      msg: 'the shadow rules about signing in decide otherwise',
      stage: 'mfa',
      userId: 'u1',
      differs: ['allow', 'reason', 'require'],
      shadow: { allow: false, reason: 'later', require: [], session: {} },
    }),
  )
  // Those that decide nothing stop nobody either.
  await writeFiles(folder, { 'own.rego': own('deny contains 7') })
  await until(async () => {
    expect(policy.decideSignIn({ ...question, stage: 'prove' }).allow).toBe(true)
    expect((await metrics.render()).text).toMatch(/shadow_decisions_total\{stage="prove",outcome="error"\} [1-9]/)
  })
})
