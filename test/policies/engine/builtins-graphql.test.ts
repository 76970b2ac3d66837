import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../../platform/logger.ts'
import { loadPolicies } from '../../../policies/policy-set.ts'
import { decisionOf, ruleFolder } from '../rule-folder.ts'
import { ours, theirs } from './opa-answers.ts'

/** What agrees with OPA is in `builtins/graphql.rego.txt`. */

const valid = (query: string, schema: string) => `graphql.is_valid(\`${query}\`, \`${schema}\`)`

test('a query that OPA lets pass and the specification does not is not valid', async () => {
  const scalars = 'scalar S enum E { X } type Query { a(s: S, e: E, i: Int): Int }'
  const subscription = 'type Query { a: Int } type Subscription { a: Int }'
  const expressions = [
    valid('{ a(e: {}) }', scalars),
    valid('{ a(i: 2147483648) }', scalars),
    valid('subscription { a b: a }', subscription),
    valid('subscription { a @skip(if: true) }', subscription),
    valid('{ __type(name: "Query") { fields(includeDeprecated: null) { name } } }', scalars),
  ]
  expect(await ours(expressions)).toEqual(expressions.map((one) => `${one} = false`))
  expect(await theirs(expressions)).toEqual(expressions.map((one) => `${one} = true`))
})

test('a document that OPA reads and the specification does not know is none', async () => {
  const expressions = [
    'graphql.parse_query(`query ($a: Int @d(x: $b)) { a }`)',
    'graphql.parse_query(`{ a(s: "\\ud800") }`)',
    'graphql.parse_query(`{ a(s: """""""") }`)',
    'graphql.parse_schema(`enum E { true }`)',
    'graphql.parse_schema(`schema @d`)',
    'graphql.parse_schema(`"" extend type T { a: Int }`)',
  ]
  expect(await ours(expressions)).toEqual(expressions.map((one) => `${one} = undefined`))
  expect((await theirs(expressions)).filter((one) => one.endsWith(' = undefined'))).toEqual([])
})

test('documents from callers cannot keep the gateway busy or end it', { timeout: 60_000 }, async () => {
  const decision = await decisionOf(`decision := graphql.is_valid(input.query, schema)

schema := \`type Query { a(f: F): Query b: Int } input F { f: F }\`

# METADATA
# entrypoint: true
valid_schema := graphql.schema_is_valid(input.query)`)
  const isValid = (query: string, entrypoint = 'decision') => decision.evaluate(`test/${entrypoint}`, { query })
  const nested = (open: string, inner: string, close: string, levels: number) =>
    `${open.repeat(levels)}${inner}${close.repeat(levels)}`
  const spreads = (count: number) =>
    Array.from({ length: count }, (_, i) => `fragment F${i} on Query { a { ...F${i + 1} } x: a { ...F${i + 1} } }`)

  expect(isValid(`{ ${nested('a {', 'b', '}', 500)} }`)).toBe(true)
  expect(isValid(nested('{ a', '{ b }', '}', 12_000))).toBe(false)
  expect(isValid(`{ a(f: ${nested('{f:', '{}', '}', 12_000)}) { b } }`)).toBe(false)
  expect(isValid(`type Query { a: ${nested('[', 'Int', ']', 25_000)} }`, 'valid_schema')).toBe(false)
  expect(isValid(`{ ...F0 } ${spreads(40).join(' ')} fragment F40 on Query { b }`)).toBe(true)
  // Each field is compared with all others of its name: too many for one evaluation.
  for (const fields of ['a { a { b } } '.repeat(4000), 'nothing '.repeat(8000)]) {
    expect(() => isValid(`{ ${fields} }`)).toThrow(expect.objectContaining({ name: 'UnitsUsedUp' }))
  }
  expect(isValid('{ a { b } }')).toBe(true)
})

test('rules in threads of their own use it too', async () => {
  const rule = 'decision := graphql.is_valid(input.query, `type Query { a: Int }`)'
  const policies = await loadPolicies({
    path: await ruleFolder({ 'test.rego': `package test\n\n# METADATA\n# entrypoint: true\n${rule}\n` }),
    logger: silentLogger,
    isolation: { deadline: 10_000 },
  })
  onTestFinished(policies.close!)
  expect(await policies.isolated!.evaluate('test/decision', { query: '{ a }' })).toBe(true)
  expect(await policies.isolated!.evaluate('test/decision', { query: '{ b }' })).toBe(false)
})

/** In a process that notes what it loads. */
const asked = async (rule: string) => {
  const folder = await ruleFolder({ 'test.rego': `package test\n\n# METADATA\n# entrypoint: true\n${rule}\n` })
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    const { loadPolicies } = await import(${JSON.stringify(new URL('../../../policies/policy-set.ts', import.meta.url))})
    const logger = { debug() {}, info() {}, warn() {} }
    const policies = await loadPolicies({ path: ${JSON.stringify(folder)}, logger })
    const answer = policies.evaluate('test/decision', {})
    console.log(JSON.stringify({ answer, modules: loaded.filter((url) => url.includes('/node_modules/graphql/')).length }))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return JSON.parse(stdout) as { answer: unknown; modules: number }
}

test('its package is loaded for rules that use it, and for no others', { timeout: 60_000 }, async () => {
  const others = await asked('decision := yaml.unmarshal("a: 1")')
  expect(others).toEqual({ answer: { a: 1 }, modules: 0 })
  const users = await asked('decision := graphql.schema_is_valid("type Query { a: Int }")')
  expect(users.answer).toBe(true)
  expect(users.modules).toBeGreaterThan(0)
})
