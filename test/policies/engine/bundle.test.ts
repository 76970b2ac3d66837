import { chmod, copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { demoRules, demoRulesFile } from '../../../bin/demo/rules.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { decide, defaultEntrypoint, loadPolicies, shippedPolicies } from '../../../policies/decide.ts'
import { CompilerMissing, PolicyError } from '../../../policies/engine/base/policy-error.ts'
import { readBundle, unpack } from '../../../policies/engine/bundle/bundle.ts'
import { readTar, writeTar } from '../../../policies/engine/bundle/tar.ts'
import { suppliedCapabilities } from '../../../policies/engine/compile/capabilities.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { hashSources, readSources } from '../../../policies/engine/compile/sources.ts'
import { inputSchemas } from '../../../policies/schemas.ts'
import { policyInput, ruleFolder, writeFiles } from '../rule-folder.ts'

const logger = silentLogger
const rule = (body: string) => `package test\n\n# METADATA\n# entrypoint: true\n${body}\n`
const text = (value: string) => new TextEncoder().encode(value)
const shippedFile = (name: string) => readFile(join(shippedPolicies, name))

describe('the committed files (when one of these fails: "surrogate policy generate", then "npm run format")', () => {
  test.each([
    ['bundle.tar.gz', join(shippedPolicies, 'bundle.tar.gz'), () => readSources(shippedPolicies)],
    ["the demo's rules.tar.gz", demoRulesFile, demoRules],
  ])('%s is what the compiler makes of the committed rules', async (_name, file, sourcesOf) => {
    const sources = await sourcesOf()
    const committed = unpack(await readFile(file))
    const rebuilt = unpack(await compilePolicies({ sources, opa: await findOpa() }))
    expect([...committed.keys()].sort()).toEqual([...rebuilt.keys()].sort())
    for (const [name, content] of rebuilt) {
      expect(Buffer.compare(committed.get(name)!, content), `${name} differs`).toBe(0)
    }
  })

  test('capabilities.json lists exactly what the engine supplies', async () => {
    const committed = JSON.parse(String(await shippedFile('engine/capabilities.json')))
    expect(committed).toEqual(await suppliedCapabilities(await findOpa()))
    const names = committed.builtins.map(({ name }: { name: string }) => name)
    expect(names).toContain('regex.match')
    expect(names).toContain('strings.any_prefix_match')
    expect(names).not.toContain('http.send')
    expect(names).not.toContain('opa.runtime')
  })

  test('input-schema.json describes the policy input', async () => {
    expect(JSON.parse(String(await shippedFile('input-schema.json')))).toEqual(
      JSON.parse(JSON.stringify(inputSchemas.gateway)),
    )
  })
})

describe('without a compiler', () => {
  const opaBin = '/nowhere/opa'

  test('the shipped policies load, since their bundle was made from them', async () => {
    const set = await loadPolicies({ path: shippedPolicies, logger, opaBin })
    expect(set.entrypoints).toEqual(expect.arrayContaining([defaultEntrypoint, 'surrogate/impersonation/decision']))
    expect(decide(set, defaultEntrypoint, policyInput())).toEqual({ allow: true, headers: {} })
  })

  test('a changed rule is named, and how to get a compiler', async () => {
    const folder = await ruleFolder({ 'a.rego': rule('decision := true'), 'b/c.rego': 'package c\n\nx := 1\n' })
    const sources = await readSources(folder)
    await writeFiles(folder, { 'bundle.tar.gz': await compilePolicies({ sources, opa: await findOpa() }) })
    await expect(loadPolicies({ path: folder, logger, opaBin })).resolves.toMatchObject({
      entrypoints: ['test/decision'],
    })

    await writeFiles(folder, { 'b/c.rego': 'package c\n\nx := 2\n' })
    const failure = loadPolicies({ path: folder, logger, opaBin })
    await expect(failure).rejects.toThrow(CompilerMissing)
    await expect(failure).rejects.toThrow(/b\/c\.rego was changed since .*OPA_BIN is \/nowhere\/opa.*Install OPA 1\.x/s)

    await writeFiles(folder, { 'b/c.rego': 'package c\n\nx := 1\n', 'd.rego': 'package d\n' })
    await expect(loadPolicies({ path: folder, logger, opaBin })).rejects.toThrow(/d\.rego was added/)
  })

  test('tests and examples do not make a bundle old', async () => {
    const folder = await ruleFolder({ 'a.rego': rule('decision := true') })
    const before = hashSources(await readSources(folder))
    await writeFiles(folder, { 'a_test.rego': 'nonsense', 'examples/b.rego': 'nonsense', 'readme.md': '#' })
    expect(hashSources(await readSources(folder))).toEqual(before)
  })

  test('another program in its place is not taken for OPA', async () => {
    await expect(findOpa({ opaBin: '/bin/true' })).rejects.toThrow(/is OPA unknown/)
  })
})

test('a bundle file is loaded as it is, with its revision', async () => {
  const folder = await ruleFolder({ 'a.rego': rule('decision := data.on'), 'data.json': '{"on": true}' })
  const opa = await findOpa()
  const bundle = await compilePolicies({ sources: await readSources(folder), opa, revision: '2026-01-01.1' })
  await writeFiles(folder, { 'elsewhere/policies.tar.gz': bundle })
  const set = await loadPolicies({ path: join(folder, 'elsewhere/policies.tar.gz'), logger, opaBin: '/nowhere/opa' })
  expect(set.revision).toBe('2026-01-01.1')
  expect(set.evaluate('test/decision', {})).toBe(true)
})

describe('mistakes in rules', () => {
  const issuesOf = async (files: Record<string, string>) => {
    const sources = await readSources(await ruleFolder(files))
    const failure = await compilePolicies({ sources, opa: await findOpa() }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(PolicyError)
    return (failure as PolicyError).issues
  }

  test('say file, line and column', async () => {
    expect(await issuesOf({ 'deep/a.rego': rule('decision := nothing_of_this_name') })).toEqual([
      { file: 'deep/a.rego', line: 5, column: 13, message: 'var nothing_of_this_name is unsafe' },
    ])
    expect(await issuesOf({ 'a.rego': 'package test\n\ndecision := {' })).toEqual([
      expect.objectContaining({ file: 'a.rego', line: 3, message: 'unexpected eof token' }),
      expect.objectContaining({ file: 'a.rego', line: 3 }),
    ])
  })

  test('a function that the engine does not supply is one', async () => {
    expect(await issuesOf({ 'a.rego': rule('decision := http.send({"method": "get", "url": "x"})') })).toEqual([
      { file: 'a.rego', line: 5, column: 13, message: 'undefined function http.send' },
    ])
  })

  test('a folder in which no rule is an entrypoint is one', async () => {
    expect(await issuesOf({ 'a.rego': 'package test\n\nx := 1\n' })).toEqual([
      { message: expect.stringContaining('entrypoint') },
    ])
  })
})

describe('an archive', () => {
  const files = new Map([
    ['.manifest', text('{}')],
    [`${'long/'.repeat(30)}name.rego`, text('package a')],
    ['empty', new Uint8Array()],
  ])

  test('is read as it was written, and written the same each time', () => {
    expect(new Map([...readTar(writeTar(files))].map(([name, bytes]) => [name, String(bytes)]))).toEqual(
      new Map([...files].map(([name, bytes]) => [name, String(bytes)])),
    )
    expect(writeTar(new Map([...files].reverse()))).toEqual(writeTar(files))
  })

  test('that was damaged, cut off, or tries to leave its folder is refused', async () => {
    const whole = Buffer.from(writeTar(files))
    const damaged = Buffer.from(whole)
    damaged[3] = 0x7f
    const renamed = (name: string) => {
      const bytes = Buffer.from(writeTar(new Map([['x'.repeat(name.length), text('x')]])))
      const before = sum(bytes)
      bytes.write(name, 0)
      const digits = Number.parseInt(bytes.toString('latin1', 148, 154), 8) + sum(bytes) - before
      bytes.write(digits.toString(8).padStart(6, '0'), 148)
      return bytes
    }
    const sum = (bytes: Buffer) => bytes.subarray(0, 100).reduce((total, byte) => total + byte, 0)
    expect(() => readTar(damaged)).toThrow(/damaged/)
    expect(() => readTar(whole.subarray(0, 900))).toThrow(/cut off/)
    for (const name of ['../x', 'a/../../x', 'a//x', 'a\\x', '/../x'])
      expect(() => readTar(renamed(name))).toThrow(/unsafe/)
    expect([...readTar(renamed('/policy.wasm')).keys()]).toEqual(['policy.wasm'])
  })

  test.each([
    ['not gzip', text('hello')],
    ['no archive', gzipSync(text('x'.repeat(600)))],
    ['no module', gzipSync(writeTar(files))],
    ['no manifest', gzipSync(writeTar(new Map([['policy.wasm', text('x')]])))],
    ['too large', gzipSync(Buffer.alloc(70_000_000))],
  ])('that is no bundle (%s) is refused', (_, bytes) => {
    expect(() => readBundle(bytes)).toThrow(PolicyError)
  })
})

test('the compiler that the package brings is run only when it is the release it should be', async () => {
  const folder = await ruleFolder({ 'a.rego': rule('decision := true') })
  const opa = await findOpa()
  await copyFile(opa, join(folder, 'opa'))
  await chmod(join(folder, 'opa'), 0o755)
  // A path that the operator names is the operator's to trust.
  await expect(findOpa({ opaBin: join(folder, 'opa') })).resolves.toBe(join(folder, 'opa'))
})
