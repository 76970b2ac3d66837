import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies, shippedPolicies } from '../../../policies/decide.ts'
import { ruleFolder, writeFiles } from '../rule-folder.ts'

const run = async (args: string[], opaBin?: string) => {
  const out: string[] = []
  const err: string[] = []
  const code = await policyCommand(args, {
    say: (line) => out.push(line),
    complain: (line) => err.push(line),
    opaBin,
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const rule = (value: string) => `package test\n\n# METADATA\n# entrypoint: true\ndecision := ${value}\n`

test('a policy author writes a rule, checks it, tests it and builds it', async () => {
  const folder = await ruleFolder({
    'rules/a.rego': rule('input.requst'),
    'rules/a_test.rego':
      'package test_test\n\nimport data.test\n\ntest_it if test.decision == 1 with input as {"request": 1}\n',
  })
  const path = join(folder, 'rules')
  const typo = rule('input.requst').replace('package', '# METADATA\n# schemas:\n#   - input: schema.gateway\npackage')
  await writeFiles(path, { 'a.rego': typo })
  expect(await run(['check', '--path', path])).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^a\.rego:8:13: undefined ref: input\.requst\n1 mistake$/),
  })
  expect(await run(['test', '--path', path, '--cases', folder])).toMatchObject({
    code: 1,
    out: expect.stringContaining('test_it: FAIL'),
  })

  await writeFiles(path, { 'a.rego': rule('input.request') })
  await writeFiles(folder, {
    'cases/a.yaml':
      '- name: a\n  route: { entrypoint: test/decision }\n  token: {}\n  request: { path: / }\n  expect: { status: 403 }\n',
  })
  expect(await run(['check', '--path', path])).toEqual({ code: 0, out: '2 files: no mistakes', err: '' })
  expect(await run(['test', '--path', path, '--cases', join(folder, 'cases')])).toEqual({
    code: 0,
    out: expect.stringMatching(/^PASS: 1\/1\nHTTP cases: 1\/1 passed, [1-9]\d* units of work at most$/),
    err: '',
  })
  const built = await run(['build', '--path', path, '--revision', 'v7'])
  expect(built).toMatchObject({ code: 0, out: expect.stringContaining('revision v7') })
  const set = await loadPolicies({ path, logger: silentLogger, opaBin: '/nowhere/opa' })
  expect(set.revision).toBe('v7')
})

test('a mistake in the options shows how that command is called, and no other', async () => {
  const { code, err } = await run(['eval', '--format', 'xml', 'data.a'])
  const [message, , usage, , first, ...rest] = err.split('\n')
  expect({ code, message, usage, first }).toEqual({
    code: 2,
    message: '--format must be one of json, pretty, raw',
    usage: 'Usage: surrogate policy <command> [options]',
    first: '  eval     evaluates a rule as "opa eval" does: <data.path.of.rule>',
  })
  expect(rest.join('\n')).toMatch(/ --fail[\s\S]+\n {2}--path [\s\S]+\nExit codes: /)
  expect(err).not.toMatch(/^ {2}(build|serve) /m)
  expect((await run(['serve', '--help'])).out).toMatch(/\n\n {2}serve [\s\S]+--units[\s\S]+\n\n {2}--path/)
  expect((await run(['--help'])).out).toMatch(/\n {2}build [\s\S]+\n {2}serve /)
})

test('the shipped rules and cases pass', async () => {
  const { code, out } = await run([
    'test',
    '--path',
    shippedPolicies,
    '--cases',
    join(import.meta.dirname, '..', 'cases'),
  ])
  expect(out).toMatch(/^PASS: \d+\/\d+\nHTTP cases: (\d+)\/\1 passed, \d+ units of work at most$/)
  expect(code).toBe(0)
})

test('a case that fails is shown with what came instead', async () => {
  const cases = await ruleFolder({
    'a.yaml': '- name: open\n  route: { auth: none }\n  request: { path: / }\n  expect: { status: 403 }\n',
  })
  const { code, out } = await run(['test', '--path', shippedPolicies, '--cases', cases])
  expect(out).toContain('a.yaml: open: FAIL\n  status: expected 403, got 200\nHTTP cases: 0/1 passed')
  expect(code).toBe(1)
})

test('a folder without cases is told as one', async () => {
  const path = await ruleFolder({
    'a.rego': rule('1'),
    'a_test.rego': 'package test_test\n\nimport data.test\n\ntest_it if test.decision == 1\n',
  })
  const { code, out } = await run(['test', '--path', path, '--cases', path])
  expect({ code, out }).toEqual({ code: 0, out: 'PASS: 1/1\nHTTP cases: none' })
})

test('rules that do not compile are 1, wrong usage is 2, no compiler is 3', async () => {
  const path = await ruleFolder({ 'a.rego': rule('nonsense') })
  expect(await run(['build', '--path', path])).toEqual({ code: 1, out: '', err: 'a.rego:5:13: var nonsense is unsafe' })
  expect(await run(['build', '--path', '/nowhere'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('/nowhere'),
  })
  expect(await run(['build', '--path', path], '/nowhere/opa')).toMatchObject({
    code: 3,
    err: expect.stringContaining('Install OPA'),
  })
  for (const args of [[], ['biuld'], ['build', '--pth', path], ['check', 'stray'], ['constructor']]) {
    expect(await run(args)).toMatchObject({ code: 2, err: expect.stringContaining('Usage: surrogate policy') })
  }
})

test('every command answers --help with the usage', async () => {
  const asked = [
    ['--help'],
    ['-h'],
    ['help'],
    ...['build', 'check', 'test', 'explain', 'bench'].map((name) => [name, '--help']),
  ]
  for (const args of [...asked, ['build', '--path', 'rules', '-h']]) {
    expect(await run(args), args.join(' ')).toMatchObject({
      code: 0,
      out: expect.stringContaining('Usage: surrogate policy'),
      err: '',
    })
  }
})

describe('check finds what build refuses', () => {
  const both = async (files: Record<string, string>) => {
    const path = await ruleFolder(files)
    return { check: await run(['check', '--path', path]), build: await run(['build', '--path', path]) }
  }

  test('what does not compile, told once', async () => {
    const { check, build } = await both({ 'a.rego': rule('nonsense') })
    expect(check).toEqual({ code: 1, out: `${build.err}\n1 mistake`, err: '' })
  })

  test('a folder without an entrypoint', async () => {
    const { check, build } = await both({ 'a.rego': 'package a\n\nx := 1\n' })
    expect(build.code).toBe(1)
    expect(check).toEqual({ code: 1, out: `${build.err}\n1 mistake`, err: '' })
  })

  test('tests beside the rules are checked, and are no rules', async () => {
    const tests = 'package test_test\n\nimport data.test\n\ntest_it if startswith("a", test.decision)\n'
    const { check } = await both({ 'a.rego': rule('"x"'), 'a_test.rego': tests })
    expect(check).toEqual({ code: 0, out: '2 files: no mistakes', err: '' })
  })

  test('a single file', async () => {
    expect((await both({ 'a.rego': rule('1') })).check.out).toBe('1 file: no mistakes')
  })
})
