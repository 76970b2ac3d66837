import { rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, watchPolicies } from '../../policies/decide.ts'
import { compilePolicies } from '../../policies/engine/compile/compile.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { readSources } from '../../policies/engine/compile/sources.ts'
import { until } from '../support/until.ts'
import { ruleFolder, writeFiles } from './rule-folder.ts'

const rule = (value: string) => `package test\n\n# METADATA\n# entrypoint: true\ndecision := ${value}\n`

const watch = async (path: string) => {
  const policies = await watchPolicies({ path, logger: silentLogger })
  onTestFinished(policies.close)
  return policies
}

test('an edited rule is in force soon, a broken one never, and status says why', async () => {
  const folder = await ruleFolder({ 'a.rego': rule('"first"') })
  const policies = await watch(folder)
  const first = policies.current()
  expect(first.evaluate('test/decision', {})).toBe('first')
  expect(policies.status()).toEqual({ revision: first.revision })

  await writeFiles(folder, { 'a.rego': rule('"second"') })
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe('second'))
  // Whoever holds the old set finishes with it.
  expect(first.evaluate('test/decision', {})).toBe('first')
  const good = policies.status().revision

  await writeFiles(folder, { 'a.rego': rule('nonsense') })
  await until(() => expect(policies.status().lastError).toContain('a.rego:5:13: var nonsense is unsafe'))
  expect(policies.status().revision).toBe(good)
  expect(policies.current().evaluate('test/decision', {})).toBe('second')

  await writeFiles(folder, { 'a.rego': rule('data.third'), 'data.json': '{"third": "third"}' })
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe('third'))
  expect(policies.status()).toEqual({ revision: policies.current().revision })

  await writeFiles(folder, { 'data.json': '{"third": "fourth"}' })
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe('fourth'))
})

test('other documents for the same rules need no compiler; other rules, YAML and mistakes do', async () => {
  const [folder, tools] = [
    await ruleFolder({ 'a.rego': rule('[data.a, data.b.c]'), 'data.json': '{"a": 1, "b": {"c": 2}}' }),
    await ruleFolder({}),
  ]
  const opaBin = join(tools, 'opa')
  await symlink(await findOpa(), opaBin)
  const policies = await watchPolicies({ path: folder, logger: silentLogger, opaBin })
  onTestFinished(policies.close)
  const decision = () => policies.current().evaluate('test/decision', {})
  expect(decision()).toEqual([1, 2])
  await rm(opaBin)

  await writeFiles(folder, { 'data.json': '{"a": 3}', 'b/data.json': '{"c": {"d": 4}}' })
  await until(() => expect(decision()).toEqual([3, { d: 4 }]))
  // About 3 MB: in a thread.
  await writeFiles(folder, { 'b/data.json': JSON.stringify({ c: 5, other: 'x'.repeat(3_000_000) }) })
  await until(() => expect(decision()).toEqual([3, 5]))
  const good = policies.status()
  expect(good).toEqual({ revision: policies.current().revision })

  const changes: Record<string, string>[] = [
    { 'data.json': '{"a": 3, "b": {"c": 6}}' },
    { 'data.json': '[]' },
    { 'data.json': '{"a": 3}', 'a.rego': rule('data.a') },
    { 'b/d/data.yaml': 'e: 1' },
  ]
  for (const change of changes) {
    await writeFiles(folder, change)
    await until(() => expect(policies.status().lastError).toContain('cannot be run'))
    expect(decision()).toEqual([3, 5])
    await rm(join(folder, 'b/d'), { recursive: true, force: true })
    await writeFiles(folder, { 'data.json': '{"a": 3}', 'a.rego': rule('[data.a, data.b.c]') })
    await until(() => expect(policies.status()).toEqual(good))
  }

  await symlink(await findOpa(), opaBin)
  await writeFiles(folder, { 'data.json': '{"a": 3, "b": {"c": 6}}' })
  await until(() => expect(policies.status().lastError).toContain('data.json: failed to insert'))
})

test('a folder that disappears keeps the last good set and comes back', async () => {
  const parent = await ruleFolder({ 'rules/a.rego': rule('"first"'), 'other/a.rego': rule('"second"') })
  const policies = await watch(join(parent, 'rules'))
  await rm(join(parent, 'rules'), { recursive: true })
  await until(() => expect(policies.status().lastError).toContain('there are no policies'))
  expect(policies.current().evaluate('test/decision', {})).toBe('first')
  await rename(join(parent, 'other'), join(parent, 'rules'))
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe('second'))
})

test('rules that compile but lack an entrypoint that is needed do not replace the good ones', async () => {
  const folder = await ruleFolder({ 'a.rego': rule('"first"'), 'b/b.rego': 'package other\n\nx := 1\n' })
  const policies = await watchPolicies({ path: folder, logger: silentLogger, needed: ['test/decision'] })
  onTestFinished(policies.close)
  const whole = policies.status()

  await rename(join(folder, 'a.rego'), join(folder, 'a.rego.away'))
  await writeFiles(folder, { 'b/b.rego': rule('2').replace('package test', 'package other') })
  await until(() => expect(policies.status().lastError).toContain('lack these entrypoints: test/decision'))
  expect(policies.current().evaluate('test/decision', {})).toBe('first')

  await rename(join(folder, 'a.rego.away'), join(folder, 'a.rego'))
  await writeFiles(folder, { 'b/b.rego': 'package other\n\nx := 1\n' })
  await until(() => expect(policies.status()).toEqual(whole))
})

test('rules behind links are followed, as Kubernetes mounts and swaps them', async () => {
  const folder = await ruleFolder({ '..1/a.rego': rule('"first"'), '..2/a.rego': rule('"second"') })
  await symlink('..1', join(folder, '..data'))
  await symlink('..data/a.rego', join(folder, 'a.rego'))
  const policies = await watch(folder)
  expect(policies.current().evaluate('test/decision', {})).toBe('first')
  await symlink('..2', join(folder, '..next'))
  await rename(join(folder, '..next'), join(folder, '..data'))
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe('second'))
})

test('a bundle file that is replaced is loaded', async () => {
  const opa = await findOpa()
  const bundleOf = async (value: string) =>
    compilePolicies({ sources: await readSources(await ruleFolder({ 'a.rego': rule(value) })), opa })
  const folder = await ruleFolder({ 'b.tar.gz': await bundleOf('1'), 'next.tar.gz': await bundleOf('2') })
  const policies = await watch(join(folder, 'b.tar.gz'))
  expect(policies.current().evaluate('test/decision', {})).toBe(1)
  await rename(join(folder, 'next.tar.gz'), join(folder, 'b.tar.gz'))
  await until(() => expect(policies.current().evaluate('test/decision', {})).toBe(2))
  await writeFiles(folder, { 'b.tar.gz': 'torn' })
  await until(() => expect(policies.status().lastError).toContain('not a readable bundle'))
  expect(policies.current().evaluate('test/decision', {})).toBe(2)
})

test('the first load must succeed', async () => {
  await expect(watch('/nowhere/policies')).rejects.toThrow('there are no policies at /nowhere/policies')
  await expect(watch(await ruleFolder({ 'readme.md': '' }))).rejects.toThrow('holds no .rego file')
  await expect(
    loadPolicies({ path: await ruleFolder({ 'a.rego': rule('nonsense') }), logger: silentLogger }),
  ).rejects.toThrow('a.rego:5:13')
})

test('a reload on demand takes what is there now, and a broken state never', async () => {
  const folder = await ruleFolder({ 'a.rego': rule('"first"') })
  const policies = await watch(folder)
  await writeFiles(folder, { 'a.rego': rule('"second"') })
  await policies.reload()
  expect(policies.current().evaluate('test/decision', {})).toBe('second')
  await writeFiles(folder, { 'a.rego': rule('nonsense') })
  await policies.reload()
  expect(policies.status().lastError).toContain('nonsense')
  expect(policies.current().evaluate('test/decision', {})).toBe('second')
})
