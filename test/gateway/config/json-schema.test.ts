import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { formsOf, gatewayJsonSchema, type SchemaNode } from '../../../gateway/config/json-schema.ts'

const root = new URL('../../..', import.meta.url)
const read = (file: string) => readFile(fileURLToPath(new URL(file, root)), 'utf8')
// `strict` refuses keywords that it does not know: an editor would silently not act on them.
const validate = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(gatewayJsonSchema())

const problemsOf = (text: string) => {
  validate(parse(text))
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

test('the examples of the documentation and the demo are right for an editor too', async () => {
  const page = await read('docs/operators.md')
  const [example] = [...page.matchAll(/```yaml\n(version: 1[\s\S]*?)```/g)].map(([, text]) => text!)
  expect(problemsOf(example!)).toEqual([])
  expect(problemsOf(await read('bin/demo/gateway.yaml'))).toEqual([])
})

test.each([
  ['version: 1\nlisen: {}\n', ' must NOT have additional properties'],
  ['version: 2\n', '/version must be equal to constant'],
  ['version: 1\nadmin: { port: many }\n', '/admin/port'],
  ['version: 1\ndrain: { timeout: 5 }\n', '/drain/timeout must be string'],
  ['version: 1\ndrain: { timeout: "5" }\n', '/drain/timeout must match pattern'],
  ['version: 1\nupstreams: { api: { url: ftp://x } }\n', '/upstreams/api/url must match pattern'],
  ['version: 1\nroutes: [{ path: /x }]\n', "/routes/0 must have required property 'id'"],
  ['version: 1\nallowInsecure: [everything]\n', '/allowInsecure/0 must be equal to one of the allowed values'],
])('what is wrong is told while it is written: %j', (text, problem) => {
  expect(problemsOf(text)).toEqual(expect.arrayContaining([expect.stringContaining(problem)]))
})

test('a variable of the environment may stand where a text does', () => {
  const text = `version: 1
listen: { port: "\${PORT}" }
drain: { timeout: "\${PATIENCE}" }
upstreams: { api: { url: "\${API}" } }
`
  expect(problemsOf(text)).toEqual([])
})

/** Every setting with its path: `upstreams.url` is that of any upstream. */
const settingsOf = (
  node: SchemaNode,
  path: readonly string[] = [],
): { path: readonly string[]; setting: SchemaNode }[] =>
  formsOf(node).flatMap(({ properties = {}, additionalProperties }) => [
    ...Object.entries(properties).flatMap(([name, setting]) => [
      { path: [...path, name], setting },
      ...settingsOf(setting, [...path, name]),
    ]),
    ...(typeof additionalProperties === 'object' ? settingsOf(additionalProperties, path) : []),
  ])

test('every setting is described', () => {
  const settings = settingsOf(gatewayJsonSchema())
  expect(settings.length).toBeGreaterThan(100)
  expect(settings.filter(({ setting }) => !setting.description).map(({ path }) => path.join('.'))).toEqual([])
})

test('every member is named in the documentation for operators', async () => {
  const page = await read('docs/operators.md')
  const named = new Set(
    [...page.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/[A-Za-z][A-Za-z0-9]*/g) ?? []),
  )
  const yaml = new Set(
    [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(
      ([, text]) => text!.match(/[A-Za-z][A-Za-z0-9]*(?=:)/g) ?? [],
    ),
  )
  const names = settingsOf(gatewayJsonSchema()).map(({ path }) => path.at(-1)!)
  expect(names.filter((name) => !named.has(name) && !yaml.has(name))).toEqual([])
})
