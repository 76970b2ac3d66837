import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, type PolicyInput, type PolicySet } from '../../policies/decide.ts'

/** A folder of rules that lives as long as the test. */
export const ruleFolder = async (files: Record<string, string | Uint8Array>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-rules-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFiles(folder, files)
  return folder
}

export const writeFiles = async (folder: string, files: Record<string, string | Uint8Array>): Promise<void> => {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}

/** Compiles rules with the real compiler and loads them into the real engine. */
export const policiesOf = async (files: Record<string, string>): Promise<PolicySet> =>
  loadPolicies({ path: await ruleFolder(files), logger: silentLogger })

/** A set whose entrypoint `test/decision` is this rule body. */
export const decisionOf = (rules: string): Promise<PolicySet> =>
  policiesOf({ 'test.rego': `package test\n\n# METADATA\n# entrypoint: true\n${rules}\n` })

/** A GET of one order by its owner; the arguments replace whole members. */
export const policyInput = (changes: Partial<PolicyInput> = {}): PolicyInput => ({
  version: 1,
  request: {
    id: 'r1',
    method: 'GET',
    scheme: 'https',
    host: 'api.example.test',
    path: '/orders/42',
    segments: ['orders', '42'],
    folded: { path: '/orders/42', segments: ['orders', '42'] },
    query: {},
    headers: {},
    clientIp: '203.0.113.9',
  },
  route: {
    id: 'orders',
    params: { id: '42' },
    scopes: ['read:orders'],
    audience: ['https://api.example.test/orders'],
    impersonation: 'allow',
    context: {},
  },
  token: {
    iss: 'https://issuer.example.test',
    aud: ['https://api.example.test/orders'],
    scopes: ['read:orders'],
    impersonation: false,
    exp: 1_767_225_900,
    claims: {},
  },
  subject: { id: 'u1' },
  client: { id: 'web' },
  now: 1_767_225_600,
  ...changes,
})
