import { generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { shippedPolicies } from '../../../policies/decide.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { policyInput, ruleFolder } from '../rule-folder.ts'

const run = async (...args: string[]) => {
  const out: string[] = []
  const err: string[] = []
  const code = await policyCommand(args, { say: (line) => out.push(line), complain: (line) => err.push(line) })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const gatewayRules = await readFile(join(shippedPolicies, 'gateway/decision.rego'), 'utf8')

/** The shipped gateway policy and an objection to refunds. */
const folderOf = (files: Record<string, string> = {}) =>
  ruleFolder({
    'rules/gateway/decision.rego': gatewayRules,
    'rules/gateway/office_hours.rego': `package surrogate.gateway

deny contains {"reason": "office_hours"} if {
	input.route.id == "refund"
	not data.office.open
}
`,
    'rules/data.json': '{"office": {"open": false}}',
    'cases/refund.yaml': `- name: refunds wait for office hours
  route: { id: refund, scopes: ["refund"] }
  request: { method: POST, path: /refund }
  token: { scope: refund }
  expect: { status: 403, reason: office_hours }
`,
    ...files,
  })

describe('explain', () => {
  test('shows of a case which rules held, and where the others stopped', async () => {
    const folder = await folderOf()
    const { code, out } = await run(
      'explain',
      '--path',
      join(folder, 'rules'),
      '--cases',
      join(folder, 'cases'),
      '--case',
      'refunds wait for office hours',
    )
    expect(code).toBe(0)
    expect(out.split('\n')).toEqual([
      'surrogate/gateway/decision: {"allow":false,"reason":"office_hours"}',
      expect.stringMatching(/^[1-9]\d* units of work$/),
      '',
      '- decision  gateway/decision.rego:17  stopped at line 18: scope_missing',
      '  - scope_missing  gateway/decision.rego:26  stopped at line 28: not granted(scope)  (scope = "refund")',
      '    + granted  gateway/decision.rego:32  (scope = "refund")',
      '+ decision  gateway/decision.rego:19',
      '  + objections  gateway/decision.rego:34',
      '    - deny  gateway/decision.rego:36  stopped at line 36: deny contains {"reason": "impersonation_denied"} if not impersonation_permitted',
      '      + impersonation_permitted  gateway/decision.rego:38',
      '    + deny  gateway/office_hours.rego:3',
      '    - deny  gateway/decision.rego:48  stopped at line 49: input.token.claims.access == "read"',
    ])
  })

  const logged = (id: string, result: object, more: object = {}) =>
    JSON.stringify({
      decision_id: id,
      path: 'surrogate/gateway/decision',
      input: policyInput({ route: { ...policyInput().route, id: 'refund' } }),
      result,
      ...more,
    })

  test('takes the last denial of a decision log, or the decision with an id', async () => {
    const lines = [
      logged('1', { allow: false, reason: 'office_hours' }, { erased: ['/input/token/claims/email'] }),
      logged('2', { allow: true }),
      JSON.stringify({ decision_id: '3', result: { allow: true } }),
    ]
    const folder = await folderOf({ 'decisions.log': `${lines.join('\n')}\n` })
    const explain = (...args: string[]) =>
      run('explain', '--path', join(folder, 'rules'), join(folder, 'decisions.log'), ...args)

    const denial = await explain()
    expect(denial.out).toContain(
      'surrogate/gateway/decision: {"allow":false,"reason":"office_hours"}\nerased from the log',
    )
    expect(denial.out).toContain('/input/token/claims/email')
    expect(denial.out).not.toContain('the log says')
    expect((await explain('--id', '2')).out).toContain(
      'the log says allowed: the rules, their data or the time were others then',
    )
    expect(await explain('--id', '9')).toMatchObject({ code: 1, err: 'there is no decision with the id 9' })
  })

  test('takes a bare input, answers as data, and says what is undefined', async () => {
    const folder = await folderOf({ 'input.json': JSON.stringify(policyInput(), null, 2), 'empty.json': '{}' })
    const path = join(folder, 'rules')
    const { out } = await run('explain', '--path', path, join(folder, 'input.json'), '--json')
    expect(JSON.parse(out)).toMatchObject({ entrypoint: 'surrogate/gateway/decision', result: { allow: true } })
    expect((await run('explain', '--path', path, join(folder, 'empty.json'))).out).toContain('undefined, which denies')
  })

  test('what cannot be explained is said in one line', async () => {
    const folder = await folderOf({ 'torn.log': 'not json\n' })
    const path = join(folder, 'rules')
    expect(await run('explain', '--path', path, join(folder, 'torn.log'))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/neither JSON/),
    })
    expect(await run('explain', '--path', path, join(folder, 'gone'))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot be read/),
    })
    expect(await run('explain', '--path', path)).toMatchObject({
      code: 2,
      err: expect.stringContaining('name one file'),
    })
    expect(await run('explain', '--path', path, '--cases', join(folder, 'cases'), '--case', 'x')).toMatchObject({
      code: 1,
      err: 'there are 0 cases named "x"',
    })
  })
})

describe('test', () => {
  test('tells which lines nothing evaluated, and fails below a threshold', async () => {
    const folder = await folderOf()
    const args = ['test', '--path', join(folder, 'rules'), '--cases', join(folder, 'cases')]
    const { code, out } = await run(...args, '--coverage')
    expect(code).toBe(0)
    expect(out).toMatch(
      /gateway\/decision\.rego {2}\d\d % {2}not covered: [\d, -]+\ngateway\/office_hours\.rego {2}100 %\ncoverage: \d\d\.\d %$/,
    )
    expect(await run(...args, '--threshold', '99')).toMatchObject({
      code: 1,
      out: expect.stringContaining('below 99 %'),
    })
    expect(await run(...args, '--threshold', '30')).toMatchObject({ code: 0 })
    expect(await run(...args, '--threshold', 'most')).toMatchObject({ code: 2 })
  })

  test('writes what build servers read', async () => {
    const folder = await folderOf({
      'rules/a_test.rego': 'package a_test\n\ntest_holds if true\n\ntest_not if 1 == 2\n\ntodo_test_later if false\n',
      'cases/b.yaml':
        '- name: a <case> & "more"\n  route: {}\n  request: { path: / }\n  token: {}\n  expect: { status: 201 }\n',
    })
    const file = join(folder, 'junit.xml')
    const { code } = await run(
      'test',
      '--path',
      join(folder, 'rules'),
      '--cases',
      join(folder, 'cases'),
      '--junit',
      file,
    )
    expect(code).toBe(1)
    const xml = (await readFile(file, 'utf8')).replaceAll(/ time="[\d.]+"/g, '')
    expect(xml).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="rules" tests="3" failures="1" skipped="1">
    <testcase classname="a_test" name="test_holds"/>
    <testcase classname="a_test" name="test_not"><failure message="a_test.rego:5: the test does not hold">a_test.rego:5: the test does not hold</failure></testcase>
    <testcase classname="a_test" name="todo_test_later"><skipped/></testcase>
  </testsuite>
  <testsuite name="HTTP cases" tests="2" failures="1" skipped="0">
    <testcase classname="b.yaml" name="a &lt;case&gt; &amp; &quot;more&quot;"><failure message="status: expected 201, got 200">status: expected 201, got 200</failure></testcase>
    <testcase classname="refund.yaml" name="refunds wait for office hours"/>
  </testsuite>
</testsuites>
`)
  })

  test('writes it for build servers also where coverage is asked of tests that fail', async () => {
    const folder = await folderOf({
      'rules/a_test.rego': 'package a_test\n\ntest_holds if true\n\ntest_not if 1 == 2\n',
      'junit.xml': 'of the run before',
    })
    const file = join(folder, 'junit.xml')
    const paths = ['--path', join(folder, 'rules'), '--cases', join(folder, 'cases'), '--junit', file]
    for (const asked of [['--coverage'], ['--threshold', '1']]) {
      const { code, out, err } = await run('test', ...paths, ...asked)
      expect({ code, err }).toEqual({ code: 1, err: '' })
      expect(out).toContain('test_not: FAIL')
      expect(out).toMatch(/coverage: not measured while tests of rules fail$/)
      expect(await readFile(file, 'utf8')).toContain('<testsuite name="rules" tests="2" failures="1"')
    }
  })

  test('cases may meet the routes of a gateway.yaml, matched as the gateway does', async () => {
    const folder = await folderOf({
      'gateway.yaml': `version: 1
issuers: [{ issuer: "http://127.0.0.1:1/oidc" }, { issuer: "http://127.0.0.1:2/oidc" }]
upstreams: { shop: { url: "http://127.0.0.1:2" } }
routes:
  - { id: refund, path: "/orders/{id}/refund", methods: [POST], audience: [shop], issuers: ["http://127.0.0.1:1/oidc"], scopes: [refund], upstream: shop }
  - { id: orders, path: "/orders/{id}", audience: [shop], issuers: ["http://127.0.0.1:2/oidc"], impersonation: read-only, upstream: shop, insufficientScopeStatus: 403, scopes: [orders] }
  - { id: open, path: /open, auth: none, upstream: shop }
`,
      'cases/refund.yaml': `- name: the route is found by method and path
  request: { method: POST, path: /orders/%34%32/refund }
  token: { scope: refund }
  expect: { status: 403, reason: office_hours }
- name: acting for somebody
  request: { method: PUT, path: /orders/42 }
  token: { scope: orders, act: { sub: s1 } }
  expect: { status: 403, reason: impersonation_denied }
- name: the status of the route
  request: { path: /orders/42 }
  token: {}
  expect: { status: 403, reason: insufficient_scope, scope: [orders] }
- { name: no token, request: { path: /orders/42 }, expect: { status: 401, reason: token_missing } }
- { name: another audience, request: { path: /orders/42 }, token: { aud: other }, expect: { status: 401, reason: invalid_token } }
- { name: another issuer, request: { path: /orders/42 }, token: { iss: "http://127.0.0.1:1/oidc" }, expect: { status: 401, reason: invalid_token } }
- { name: open, request: { path: /open }, expect: { status: 200 } }
- { name: no route, request: { path: /nothing }, expect: { status: 404 } }
- { name: two readings, request: { path: /a/../open }, expect: { status: 400 } }
`,
    })
    const args = [
      '--path',
      join(folder, 'rules'),
      '--cases',
      join(folder, 'cases'),
      '--config',
      join(folder, 'gateway.yaml'),
    ]
    expect(await run('test', ...args)).toMatchObject({
      code: 0,
      out: expect.stringContaining('HTTP cases: 9/9 passed'),
    })
    expect((await run('explain', ...args, '--case', 'acting for somebody')).out).toContain('"impersonation_denied"')
    expect(await run('test', ...args, '--config', join(folder, 'gone.yaml'))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/cannot be read/),
    })
  })
})

test('bench measures a decision with and without the memory of answers', async () => {
  const folder = await folderOf({ 'input.json': JSON.stringify(policyInput()) })
  const path = join(folder, 'rules')
  const { code, out } = await run('bench', '--path', path, '--cases', join(folder, 'cases'), '--decisions', '2000')
  expect(code).toBe(0)
  const figures = 'p50 [\\d.]+ µs  p99 [\\d.]+ µs  p99\\.9 [\\d.]+ µs  memory [+-][\\d.]+ MB  '
  expect(out).toMatch(
    new RegExp(
      `the case "refunds wait .*\nevaluated {13}${figures}[1-9]\\d* units\nanswered from memory {2}${figures}0 units$`,
    ),
  )
  expect((await run('bench', '--path', path, join(folder, 'input.json'), '--decisions', '10')).out).toContain(
    'the input in',
  )
})

describe('units of work', () => {
  const costly = `package surrogate.gateway

deny contains {"reason": "costly"} if sum(numbers.range(1, input.route.context.size)) == -1
`
  const caseOf = (name: string, size: number) => `- name: ${name}
  route: { auth: none, context: { size: ${size} } }
  request: { path: / }
  expect: { status: 200 }
`
  const start = async () => {
    const cases = caseOf('few', 10) + caseOf('many', 10_000) + caseOf('too many', 100_000)
    const folder = await folderOf({ 'rules/gateway/costly.rego': costly, 'costly/a.yaml': cases })
    return [folder, '--path', join(folder, 'rules'), '--cases', join(folder, 'costly')] as const
  }

  test('test warns of a case that takes more than a tenth, and one that takes too many fails', async () => {
    const [, ...args] = await start()
    const { code, out } = await run('test', ...args)
    expect(code).toBe(1)
    expect(out).toMatch(/^warning: a\.yaml: many: takes \d+ of 5000000 units of work$/m)
    expect(out.match(/^warning/gm)).toHaveLength(1)
    expect(out).toContain('a.yaml: too many: FAIL')
    expect(out).toContain('the policy used up its 5000000 units of work')
    expect(out).toMatch(/^HTTP cases: 2\/3 passed, \d+ units of work at most$/m)
    expect((await run('check', ...args)).out).toMatch(/^warning: a\.yaml: many: takes \d+ of 5000000 units of work$/m)
  })

  test('explain says what a decision took', async () => {
    const [, ...args] = await start()
    expect((await run('explain', ...args, '--case', 'few')).out).toMatch(/^\d+ units of work$/m)
    expect((await run('explain', ...args, '--case', 'few', '--json')).out).toMatch(/"units": [1-9]/)
  })

  test('with a configuration a case has what its route has there', async () => {
    const config = `version: 1
issuers: [{ issuer: https://issuer.example.test }]
policies: { path: ./rules, units: 600000, isolation: { deadline: 100ms } }
upstreams: { app: { url: "http://127.0.0.1:3002" } }
routes:
  - { id: main, path: /main, auth: none, upstream: app, context: { size: 10000 } }
  - { id: isolated, path: /isolated, auth: none, isolation: worker, upstream: app, context: { size: 10000 } }
`
    const cases = ['main', 'isolated'].map(
      (name) => `- name: ${name}\n  request: { path: /${name} }\n  expect: { status: 200 }\n`,
    )
    const folder = await folderOf({
      'rules/gateway/costly.rego': costly,
      'costly/a.yaml': cases.join(''),
      'gateway.yaml': config,
    })
    const args = ['--path', join(folder, 'rules'), '--cases', join(folder, 'costly')]
    const { out } = await run('test', ...args, '--config', join(folder, 'gateway.yaml'))
    expect(out).toMatch(
      /main: FAIL\n {2}status: expected 200, got 403\n {2}the policy used up its 600000 units of work/,
    )
    expect(out).toContain('HTTP cases: 1/2 passed')
    expect(out).not.toMatch(/a\.yaml: isolated/)
    const explained = await run('explain', ...args, '--config', join(folder, 'gateway.yaml'), '--case', 'main')
    expect(explained.out).toContain('the policy used up its 600000 units of work')
  })
})

describe('build', () => {
  test('signs with a serial number for publishing', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const folder = await folderOf({ 'key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }) as string })
    const output = join(folder, 'b.tar.gz')
    const build = (...args: string[]) =>
      run(
        'build',
        '--path',
        join(folder, 'rules'),
        '--output',
        output,
        '--signing-key',
        join(folder, 'key.pem'),
        ...args,
      )
    const verification = { keys: new Map([['k1', { algorithm: 'ES256' as const, key: publicKey }]]), scope: 'gateway' }

    const { code, out } = await build('--key-id', 'k1', '--scope', 'gateway')
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringMatching(/serial \d{10}, signed with k1, \d+ bytes$/),
    })
    expect(readBundle(await readFile(output), verification).serial).toBeGreaterThan(1_700_000_000)
    await build('--key-id', 'k1', '--scope', 'gateway', '--serial', '7')
    expect(readBundle(await readFile(output), verification).serial).toBe(7)

    expect(await build('--algorithm', 'RS256')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/holds no private key for RS256/),
    })
    expect(await build('--algorithm', 'none')).toMatchObject({ code: 2 })
    expect(await build('--serial', '1.5')).toMatchObject({ code: 2 })
  })
})
