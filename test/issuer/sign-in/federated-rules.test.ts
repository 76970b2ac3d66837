import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies, shippedPolicies } from '../../../policies/decide.ts'
import { createBrowser } from '../../support/browser.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../support/federated.ts'
import { writeRules } from '../../support/rules.ts'

/** T 86: a provider stands in for the second factor only where rules say so, and only that of an enterprise. */

let federated: TestFederatedSignIn
let count = 0
beforeAll(async () => {
  const shipped = await readFile(join(shippedPolicies, 'signin.rego'), 'utf8')
  // As the documentation says it.
  const exempt = shipped.replace(
    'person_signs_in if input.stage in {"mfa", "finish"}',
    'person_signs_in if {\n\tinput.stage in {"mfa", "finish"}\n\tnot input.federation.kind == "sso"\n}',
  )
  expect(exempt).not.toBe(shipped)
  const { folder, remove } = await writeRules({ 'signin.rego': exempt })
  const policies = await loadPolicies({ path: folder, logger: silentLogger }).finally(remove)
  federated = await startFederatedSignIn(
    { signUp: { identifiers: [], password: false, verify: false }, mfa: { factors: ['Totp'], policy: 'NoPrompt' } },
    { policies },
  )
})
afterAll(() => federated.close())
beforeEach(() => {
  federated.clock.now = Date.now()
  count++
})

test.each([
  ['social', 'social:acme', 'example.com', 'Code from your authenticator app'],
  ['sso', '', 'corp.example', undefined],
] as const)('%s by %s at %s: %s', async (_kind, direct, domain, asked) => {
  federated.provider.person = { sub: `subject-${count}`, email: `ada${count}@${domain}`, email_verified: true }
  const come = async () => {
    const visitor = createBrowser(federated.issuer.baseUrl)
    const parameters = { direct_sign_in: direct || `sso:${federated.enterprise}` }
    return federated.comeBack(visitor, (await federated.ask(visitor, parameters)).location!)
  }
  const { sub } = await federated.claimsOf(await come())
  await federated.addTotp({ id: String(sub) })
  const again = await come()
  if (asked) expect(again.text).toContain(asked)
  else expect(await federated.claimsOf(again)).toMatchObject({ sub, amr: ['fed'] })
})
