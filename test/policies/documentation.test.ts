import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { policyCommand } from '../../bin/commands/policy.ts'
import { silentLogger } from '../../platform/logger.ts'
import { decide, loadPolicies, shippedPolicies } from '../../policies/decide.ts'

const page = new URL('../../docs/policies.md', import.meta.url)

/** The shipped rules together with every rule, data file and case of the page. */
const folderOfExamples = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-policies-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  // Without the shipped tests: the examples narrow what those expect to be allowed.
  await mkdir(join(folder, 'gateway'))
  await mkdir(join(folder, 'cases'))
  await cp(join(shippedPolicies, 'gateway/decision.rego'), join(folder, 'gateway/decision.rego'))
  const blocks = [...(await readFile(page, 'utf8')).matchAll(/```(rego|yaml)\n([\s\S]*?)```/g)]
  for (const [index, [, language, text = '']] of blocks.entries()) {
    const name =
      language === 'rego'
        ? `gateway/example_${index}${/^package \S+_test$/m.test(text) ? '_test' : ''}.rego`
        : text.startsWith('- name:')
          ? `cases/example_${index}.yaml`
          : 'data.yaml'
    await writeFile(join(folder, name), text)
  }
  return { folder, count: blocks.length }
}

test('the examples of the policy page compile, pass their own tests, and do what the page says', async () => {
  const { folder, count } = await folderOfExamples()
  const lines: string[] = []
  const run = (...args: string[]) =>
    policyCommand([...args, '--path', folder], {
      say: (line) => lines.push(line),
      complain: (line) => lines.push(line),
    })

  expect(count).toBeGreaterThanOrEqual(7)
  expect(await run('check'), lines.join('\n')).toBe(0)
  expect(await run('test', '--cases', join(folder, 'cases')), lines.join('\n')).toBe(0)
  expect(lines.join('\n')).toContain('HTTP cases: 1/1 passed')

  const set = await loadPolicies({ path: folder, logger: silentLogger })
  const input = {
    version: 1 as const,
    request: {
      id: 'r',
      method: 'GET',
      scheme: 'https',
      host: 'api.example.test',
      path: '/payment-methods',
      segments: ['payment-methods'],
      query: {},
      headers: {},
      clientIp: '203.0.113.9',
    },
    route: { id: 'x', params: {}, scopes: [], audience: ['a'], impersonation: 'allow' as const, context: {} },
    token: { iss: 'i', aud: ['a'], scopes: ['checkout'], exp: 1, claims: { ticket_id: 'T-1', plan: 'gold' } },
    subject: { id: 'u1' },
    now: 0,
  }
  const acting = { ...input, actor: { id: 's1', chain: ['s1'] } }
  const withoutTicket = {
    ...acting,
    request: { ...input.request, segments: ['orders'] },
    token: { ...input.token, claims: {} },
  }

  expect(decide(set, 'surrogate/gateway/decision', input)).toMatchObject({ allow: true })
  expect(decide(set, 'surrogate/gateway/decision', acting)).toMatchObject({
    allow: false,
    reason: 'impersonation_denied',
  })
  expect(decide(set, 'surrogate/gateway/decision', withoutTicket)).toMatchObject({
    allow: false,
    reason: 'ticket_needed',
  })
  expect(decide(set, 'shop/checkout/decision', input)).toEqual({ allow: true, headers: { 'x-plan': 'gold' } })
  expect(decide(set, 'shop/checkout/decision', { ...input, token: { ...input.token, claims: {} } })).toMatchObject({
    allow: false,
    reason: 'policy_error',
  })
})
