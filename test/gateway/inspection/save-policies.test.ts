import { chmod, lstat, mkdir, readdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ruleHeader, sha256, startPolicyFolder } from '../../support/policy-folder.ts'
import { until } from '../../support/until.ts'

/** Rules that are saved into the folder of the gateway. */

const rules = (verdict: boolean) => `${ruleHeader}decision := {"allow": ${verdict}}\n`
const testOf = (verdict: boolean) => `package surrogate.gateway_test

import data.surrogate.gateway

test_it if gateway.decision.allow == ${verdict}
`

let own: Awaited<ReturnType<typeof startPolicyFolder>>

beforeAll(async () => {
  own = await startPolicyFolder(
    { 'decision.rego': rules(true), 'decision_test.rego': testOf(true), 'sub/more.rego': 'package more\n' },
    { inspection: { savePolicies: true } },
  )
})
afterAll(() => own.close())

const status = async () => (await own.gateway.call('/orders/1')).status

test('rules and their test are saved together, and in force at once', async () => {
  expect(await own.client.get('policies')).toMatchObject({ canSave: true, inForce: true })
  await chmod(join(own.folder, 'decision.rego'), 0o640)
  expect(await status()).toBe(200)
  const files = {
    'decision.rego': { text: rules(false), replaces: sha256(rules(true)) },
    'decision_test.rego': { text: testOf(false), replaces: sha256(testOf(true)) },
  }
  expect(await own.put(files)).toEqual({
    status: 200,
    body: {
      files: [
        { path: 'decision_test.rego', sha256: sha256(testOf(false)) },
        { path: 'decision.rego', sha256: sha256(rules(false)) },
      ],
    },
  })
  await until(async () => expect(await status()).toBe(403))
  expect(await own.client.get('policies')).toMatchObject({ inForce: true })
  expect((await stat(join(own.folder, 'decision.rego'))).mode & 0o777).toBe(0o640)
  // Nothing is left beside them.
  expect((await readdir(own.folder)).sort()).toEqual(['decision.rego', 'decision_test.rego', 'sub'])

  // What was read before is not what is there: nobody's change is lost.
  expect(await own.put(files)).toMatchObject({ status: 412, body: { code: 'rules_changed' } })
  expect(await own.read('decision.rego')).toBe(rules(false))
})

test('a file is made and taken away, by what is known of it only', async () => {
  const text = 'package more\n\np := 1\n'
  const made = (replaces: string | null) => own.put({ 'sub/new.rego': { text, replaces } })
  expect(await made(sha256(text))).toMatchObject({ status: 412 })
  expect(await made(null)).toMatchObject({ status: 200 })
  expect(await made(null)).toMatchObject({ status: 412 })
  expect(await own.put({ 'sub/new.rego': { text: null, replaces: sha256('other') } })).toMatchObject({ status: 412 })
  expect(await own.put({ 'sub/new.rego': { text: null, replaces: sha256(text) } })).toMatchObject({ status: 200 })
  expect(await readdir(join(own.folder, 'sub'))).toEqual(['more.rego'])
})

describe('nothing is saved', () => {
  const unchanged = async (answer: Promise<{ status: number; body: Record<string, unknown> }>, expected: object) => {
    const before = await own.read('decision.rego')
    expect(await answer).toMatchObject(expected)
    expect(await own.read('decision.rego')).toBe(before)
  }
  const replacing = async (text: string) => ({
    'decision.rego': { text, replaces: sha256(await own.read('decision.rego')) },
  })

  test('of rules that do not compile, that fail their tests, or that routes cannot ask', async () => {
    const wanted = (detail: string) => ({
      status: 422,
      body: { code: 'rules_refused', detail: expect.stringContaining(detail) },
    })
    await unchanged(own.put(await replacing('package surrogate.gateway\n\nnonsense {')), wanted('decision.rego:3'))
    await unchanged(
      own.put(await replacing(`${await own.read('decision.rego')}\n\nother := 1 if nobody\n`)),
      wanted('nobody'),
    )
    await unchanged(own.put(await replacing(rules(true))), wanted('test_it'))
    const elsewhere = `package elsewhere\n\n# METADATA\n# entrypoint: true\ndecision := {"allow": false}\n`
    await unchanged(own.put(await replacing(elsewhere)), { status: 422 })
  })

  test('without the scope, or where it is not allowed', async () => {
    const files = await replacing(rules(false))
    await unchanged(own.put(files, 'inspect evaluate'), { status: 403, body: { code: 'insufficient_scope' } })
    const other = await startPolicyFolder({ 'decision.rego': rules(true) })
    const refused = await other.put({ 'decision.rego': { text: rules(false), replaces: sha256(rules(true)) } })
    expect(refused).toMatchObject({ status: 404, body: { detail: expect.stringContaining('savePolicies') } })
    expect(await other.read('decision.rego')).toBe(rules(true))
    await other.close()
  })

  test('of several files of rules, or none', async () => {
    const more = { 'sub/more.rego': { text: 'package more\n', replaces: sha256('package more\n') } }
    await unchanged(own.put({ ...(await replacing(rules(false))), ...more }), { status: 400 })
    await unchanged(own.put({}), { status: 400 })
  })

  test.each([
    '../out.rego',
    '/tmp/out.rego',
    'sub/../../out.rego',
    '.out.rego',
    'data.json',
    'bundle.tar.gz',
    'new/out.rego',
  ])('at %s', async (path) => {
    await unchanged(own.put({ [path]: { text: 'package out\n', replaces: null } }), { status: 400 })
    expect((await readdir(own.folder)).sort()).toEqual(['decision.rego', 'decision_test.rego', 'sub'])
  })

  test('through links, of files and of folders', async () => {
    const outside = await startPolicyFolder({ 'decision.rego': rules(true), 'aim.rego': 'package aim\n' })
    await symlink(join(outside.folder, 'aim.rego'), join(own.folder, 'linked.rego'))
    await symlink(outside.folder, join(own.folder, 'folder'))
    await mkdir(join(own.folder, 'dir.rego'))
    const to = (path: string, replaces: string | null) => own.put({ [path]: { text: 'package taken\n', replaces } })
    await unchanged(to('linked.rego', sha256('package aim\n')), { status: 400 })
    await unchanged(to('folder/aim.rego', sha256('package aim\n')), { status: 400 })
    await unchanged(to('folder/new.rego', null), { status: 400 })
    await unchanged(to('dir.rego', null), { status: 400 })
    expect(await outside.read('aim.rego')).toBe('package aim\n')
    expect((await lstat(join(own.folder, 'linked.rego'))).isSymbolicLink()).toBe(true)
    await outside.close()
  })
})

test('of many who save the same at once, one does', async () => {
  const other = await startPolicyFolder({ 'decision.rego': rules(true) }, { inspection: { savePolicies: true } })
  const answers = await Promise.all(
    [1, 2, 3].map((number) =>
      other.put({ 'decision.rego': { text: `${rules(true)}# ${number}\n`, replaces: sha256(rules(true)) } }),
    ),
  )
  expect(answers.map(({ status: one }) => one).sort()).toEqual([200, 412, 412])
  await other.close()
})
