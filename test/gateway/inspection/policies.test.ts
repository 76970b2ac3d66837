import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { tryAnswer } from '../../../gateway/inspection/policy-answers.ts'
import { ruleHeader, sha256, shippedRules, startPolicyFolder } from '../../support/policy-folder.ts'
import { until } from '../../support/until.ts'

/** What operators see of the rules, and candidates that are tried beside them. */

const testsOfIt = `package surrogate.gateway_test

import data.surrogate.gateway

test_missing_scope if {
	gateway.decision.reason == "insufficient_scope" with input as {"route": {"scopes": ["a"]}, "token": {"scopes": []}}
}
`
const limits = '{ "surrogate": { "limits": { "secret": "s3cret-in-data" } } }'

let own: Awaited<ReturnType<typeof startPolicyFolder>>

beforeAll(async () => {
  own = await startPolicyFolder(
    { 'decision.rego': await shippedRules(), 'decision_test.rego': testsOfIt, 'data.json': limits },
    { members: { decisionLog: { to: '/dev/null', mask: ['/input/organization/id', '/result/reason'] } } },
  )
})
afterAll(() => own.close())

const attempt = async (body: object, claims: object = {}) => {
  const { status, body: answer } = await own.client.post('/try', body, { claims })
  return { status, answer: status === 200 ? tryAnswer.parse(answer) : answer }
}
const tried = async (body: object) => {
  const { status, answer } = await attempt(body)
  expect([status, answer]).toEqual([200, answer])
  return tryAnswer.parse(answer)
}

describe('the files', () => {
  test('are told with the texts of rules and tests, and never those of data', async () => {
    const told = await own.client.get('policies')
    expect(told).toMatchObject({ kind: 'folder', inForce: true, canSave: false, canTry: true })
    expect(told.cannotSave).toContain('savePolicies')
    expect(told.entrypoints).toEqual(['surrogate/gateway/decision'])
    const rules = await shippedRules()
    expect(told.files).toEqual([
      { path: 'data.json', size: limits.length, sha256: sha256(limits) },
      { path: 'decision.rego', size: Buffer.byteLength(rules), sha256: sha256(rules), text: rules },
      { path: 'decision_test.rego', size: testsOfIt.length, sha256: sha256(testsOfIt), text: testsOfIt },
    ])
    expect(JSON.stringify(told)).not.toContain('s3cret-in-data')
  })

  test('a link out of the folder and a huge file are named without their text', async () => {
    const outside = join(own.folder, '..', `outside-${process.pid}.rego`)
    await writeFile(outside, 'package outside\n\nsecret := "of another folder"\n')
    const other = await startPolicyFolder({
      'decision.rego': await shippedRules(),
      'huge.rego': `package huge\n\n# ${'x'.repeat(300_000)}\n`,
    })
    onTestFinished(() => other.close())
    await symlink(outside, join(other.folder, 'linked.rego'))
    const { files, inForce } = await other.client.get('policies')
    expect(files.map(({ path, text }) => [path, text !== undefined])).toEqual([
      ['decision.rego', true],
      ['huge.rego', false],
      ['linked.rego', false],
    ])
    expect(typeof inForce).toBe('boolean')
  })

  test('a bundle has none, and nothing can be tried beside it', async () => {
    const bundle = fileURLToPath(new URL('../../../policies/bundle.tar.gz', import.meta.url))
    const other = await startPolicyFolder({}, { policies: { path: undefined, bundle } })
    onTestFinished(() => other.close())
    expect(await other.client.get('policies')).toMatchObject({
      kind: 'bundle',
      files: [],
      canSave: false,
      canTry: false,
    })
    expect((await other.client.post('/try', { files: {} })).status).toBe(404)
  })
})

describe('candidates', () => {
  test('that do not compile: file and line', async () => {
    const { issues, tests } = await tried({
      files: { 'extra.rego': 'package surrogate.gateway\n\ndeny contains x if {' },
    })
    expect(issues).toEqual([expect.objectContaining({ file: 'extra.rego', line: 3, message: expect.any(String) })])
    expect(tests).toBeUndefined()
  })

  test('that compile, with a misspelt input and a test that fails', async () => {
    const extra = `package surrogate.gateway\n\ndeny contains {"reason": "late"} if input.requets.path == "/x"\n`
    const broken = `package surrogate.gateway_test\n\ntest_no if false\n`
    const { issues, warnings, tests } = await tried({ files: { 'extra.rego': extra, 'extra_test.rego': broken } })
    expect(issues).toEqual([])
    expect(warnings).toMatchObject([{ file: 'extra.rego', line: 3 }])
    expect(tests).toMatchObject({ passed: false, report: expect.stringContaining('test_no') })
    expect(tests!.tests.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['test_missing_scope', 'passed'],
      ['test_no', 'failed'],
    ])
  })

  test('that lack what routes ask', async () => {
    const { missing } = await tried({
      files: {
        'decision.rego': null,
        'other.rego': 'package other\n\n# METADATA\n# entrypoint: true\ndecision := true\n',
      },
    })
    expect(missing).toEqual(['surrogate/gateway/decision'])
    const nothing = await tried({ files: { 'decision.rego': null } })
    expect(nothing.issues).toHaveLength(1)
  })

  test('an input gives a result with its units and the rules that were asked; masks hold', async () => {
    const input = { route: { scopes: ['a'], impersonation: 'deny' }, token: { scopes: ['a'] }, request: { path: '/x' } }
    const extra = `package surrogate.gateway\n\ndeny contains {"reason": "closed"} if input.request.path == "/x"\n`
    const { evaluation } = await tried({ files: { 'extra.rego': extra }, input })
    expect(evaluation).toMatchObject({
      result: { allow: false },
      units: expect.any(Number),
      erased: ['/result/reason'],
    })
    expect(JSON.stringify(evaluation!.result)).not.toContain('closed')
    expect(evaluation!.units).toBeGreaterThan(0)
    expect(JSON.stringify(evaluation!.rules)).toContain('extra.rego')
    // What is in force is what it was.
    const { evaluation: before } = await tried({ input })
    expect(before).toMatchObject({ result: { allow: true } })
    expect((await own.client.post('/try', { input, entrypoint: 'none' })).body).toMatchObject({
      evaluation: { error: expect.stringContaining('none') },
    })
  })

  test('of the last decisions those that change, and not those whose masked members they read', async () => {
    const sign = (claims: object) => own.gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', ...claims })
    const ids: string[] = []
    for (let index = 0; index < 12; index++) {
      const token = await sign({
        sub: index % 4 === 0 ? 'mallory' : 'alice',
        ...(index % 6 === 1 && { organization_id: 'org1' }),
      })
      const answer = await own.gateway.call(`/orders/${index}`, { token })
      ids.push(answer.headers.get('x-request-id')!)
    }
    await fetch(`${own.gateway.url}/nowhere`)
    await until(async () => {
      const { decisions } = await own.client.get('decisions', '/decisions?limit=1')
      if (decisions[0]?.code !== 'not_found') throw new Error('not yet')
    })
    const deny = `package surrogate.gateway\n\ndeny contains {"reason": "banned"} if input.subject.id == "mallory"\n`
    const { decisions } = await tried({ files: { 'deny.rego': deny }, decisions: 1_000 })
    expect(decisions).toMatchObject({ notComparable: 0, notAsked: 0 })
    // Two lack the organization, which neither the shipped rules nor these read.
    expect(decisions!.found).toBe(decisions!.compared)
    expect(decisions!.changes.map(({ request }) => request)).toEqual([ids[8], ids[4], ids[0]])
    expect(decisions!.changes[0]).toMatchObject({
      route: 'orders-read',
      method: 'GET',
      path: '/orders/8',
      differs: ['allow', 'reason'],
      before: { allow: true },
      after: { allow: false },
    })
    expect(JSON.stringify(decisions)).not.toContain('banned')

    const reading = `package surrogate.gateway\n\ndeny contains {"reason": "member"} if input.organization.id == "org1"\n`
    const { decisions: masked } = await tried({ files: { 'deny.rego': reading }, decisions: 1_000 })
    expect(masked).toMatchObject({ notComparable: 2, hidden: ['/input/organization/id'], changes: [] })
    expect(masked!.compared).toBe(masked!.found - 2)
  })
})

describe('who tries what', () => {
  test('`inspect` tries nothing, and nobody reads without it', async () => {
    expect(await attempt({ files: {} }, { scope: 'inspect edit' })).toMatchObject({ status: 403 })
    expect((await own.client.call('/policies', { claims: { scope: 'evaluate' } })).status).toBe(403)
    expect(await attempt({ files: {} }, { act: { sub: 'support' } })).toMatchObject({ status: 403 })
  })

  test.each([
    '../decision.rego',
    '/etc/decision.rego',
    'a/../../decision.rego',
    './decision.rego',
    '.hidden.rego',
    'a/.hidden/b.rego',
    'a//b.rego',
    'a\\b.rego',
    'decision.rego\0.rego',
    'data.json',
    'data.yaml',
    'examples/x.rego',
    `${'a/'.repeat(20)}x.rego`,
    `${'x'.repeat(300)}.rego`,
  ])('the path %j is none', async (path) => {
    expect(await attempt({ files: { [path]: 'package x' } })).toMatchObject({ status: 400 })
  })

  test('hundreds of files, long ones and large bodies are refused; as many as may be are tried', async () => {
    const many = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`many/f${index}.rego`, `package many.f${index}\n`]),
      )
    expect(await attempt({ files: many(300) })).toMatchObject({ status: 400 })
    expect(await attempt({ files: { 'x.rego': 'x'.repeat(262_145) } })).toMatchObject({ status: 400 })
    expect(await attempt({ files: {}, input: 'x'.repeat(1_100_000) })).toMatchObject({ status: 413 })
    expect(await attempt({ files: {}, decisions: 1_001 })).toMatchObject({ status: 400 })
    expect(await attempt({ files: many(200) })).toMatchObject({ status: 200, answer: { issues: [] } })
    const under = { 'decision.rego/x.rego': 'package x\n' }
    expect(await attempt({ files: under })).toMatchObject({ answer: { issues: [{ message: expect.any(String) }] } })
  })
})

describe('rules that mean harm', () => {
  test('end by their units, or with their process, and no request waits for them', async () => {
    const endless = `package surrogate.gateway

deny contains {"reason": "endless"} if {
	some a in numbers.range(1, 3000)
	some b in numbers.range(1, 3000)
	a * b < 0
}
`
    // OPA gives each test five seconds, and would take all the memory for this one.
    const greedy = `package greedy_test

test_greedy if count([x | some x in numbers.range(1, 100000000)]) > 1
`
    const input = { route: { scopes: [] }, token: { scopes: [] }, request: { method: 'GET' } }
    const trial = tried({ files: { 'endless.rego': endless, 'greedy_test.rego': greedy }, input, decisions: 100 })
    let isDone = false
    void trial.finally(() => {
      isDone = true
    })
    expect((await own.gateway.call('/orders/1')).status).toBe(200)
    expect(isDone).toBe(false)
    const { tests, evaluation, decisions } = await trial
    expect(tests!.passed).toBe(false)
    expect(evaluation).toMatchObject({ error: expect.stringContaining('units') })
    expect(decisions!.changes[0]).toMatchObject({ after: { allow: false, error: expect.any(String) } })
  })

  test('the compiler asks nobody for the schemas that they name', async () => {
    const { port } = own.gateway.upstream
    const before = own.gateway.upstream.seen.length
    const asking = `# METADATA
# scope: package
# schemas:
#   - input: {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:${port}/schema.json"}}}
package asking

p if input.a.b == 1
`
    const { issues, warnings } = await tried({ files: { 'asking.rego': asking } })
    expect([...issues, ...warnings].map(({ message }) => message).join()).toContain('remote reference loading disabled')
    expect(own.gateway.upstream.seen.length).toBe(before)
  })

  test('trials wait for each other, and too many are told to come later', async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, () => attempt({ files: {} })))
    const statuses = answers.map(({ status }) => status).sort()
    // One runs and four wait.
    expect(statuses).toEqual([200, 200, 200, 200, 200, 503, 503, 503, 503])
  })
})

test('policies without an own entrypoint header still say what is in force', async () => {
  const other = await startPolicyFolder({ 'decision.rego': `${ruleHeader}decision := {"allow": true}\n` })
  onTestFinished(() => other.close())
  await other.write('decision.rego', 'package surrogate.gateway\n\nnonsense')
  await until(async () => expect(await other.client.get('policies')).toMatchObject({ inForce: false }))
  expect((await other.gateway.call('/orders/1')).status).toBe(200)
})
