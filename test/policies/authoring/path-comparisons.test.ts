import { join } from 'node:path'
import { expect, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { ruleFolder } from '../rule-folder.ts'

/** `surrogate policy check` warns of rules that another spelling of a path gets past. */

const check = async (...args: string[]) => {
  const lines: string[] = []
  const code = await policyCommand(['check', ...args], { say: (line) => lines.push(line), complain: () => {} })
  return { code, lines }
}

/** Lines that end in `# path` or `# segments` compare a literal with that member. */
const rules = `package shop

# METADATA
# entrypoint: true
decision := {"allow": count(deny) == 0}

first := input.request.segments[0]

protected("payment-methods") # segments

protected(name) if startswith(name, "admin") # segments

deny contains 1 if input.request.segments[0] == "payment-methods" # segments

deny contains 2 if input.request.segments[0] != "public" # segments

deny contains 3 if "admin" in input.request.segments # segments

deny contains 4 if input.request.segments[0] in {"admin", "root"} # segments

deny contains 5 if {"admin": true}[input.request.segments[0]] # segments

deny contains 6 if ["admin", _] = input.request.segments # segments

deny contains 7 if input.request.path == "/admin" # path

deny contains 8 if regex.match("^/admin", input.request.path) # path

deny contains 9 if lower(input.request.path) == "/admin" # path

deny contains 10 if first == "admin" # segments

deny contains 11 if protected(input.request.segments[1])

deny contains 12 if {
	request := input.request
	path := request.path
	path == "/admin" # path
}

deny contains 13 if {
	some name in input.request.segments
	name == "admin" # segments
}

deny contains 14 if concat("/", input.request.segments) == "a/b" # segments

deny contains 15 if not input.request["segments"][0] == "public" # segments

deny contains 16 if {
	every name in input.request.segments { name != "admin" } # segments
}

deny contains 17 if input.request.segments[1] == input.subject.id

deny contains 18 if lower(input.request.segments[0]) == "admin"

deny contains 19 if input.request.folded.segments[0] == "admin"

deny contains 20 if startswith(input.request.folded.path, "/admin")

deny contains 21 if input.request.method == "DELETE"

deny contains 22 if data.plans[input.request.segments[1]] == "free"

deny contains 23 if count(input.request.segments) > 9

deny contains 24 if {
	objections := {{"at": sprintf("%s", [input.request.path]), "reason": "x"}}
	some objection in objections
	objection.reason == "x"
}

deny contains 25 if protected(input.route.id)
`

const warned = (lines: readonly string[]) =>
  lines.flatMap((line) => {
    const [, row, member] =
      /^warning: shop\.rego:(\d+):\d+: a literal is compared with input\.request\.(path|segments), .*folded\.\2$/.exec(
        line,
      ) ?? []
    return row === undefined ? [] : [`${row} ${member}`]
  })

const expected = rules.split('\n').flatMap((line, index) => {
  const [, member] = /# (path|segments)$/.exec(line) ?? []
  return member ? [`${index + 1} ${member}`] : []
})

test('whichever way a rule compares a literal with the path as it was sent', async () => {
  const { code, lines } = await check('--path', await ruleFolder({ 'shop.rego': rules }))
  expect(warned(lines)).toEqual(expected)
  expect({ code, last: lines.at(-1) }).toEqual({ code: 0, last: expect.stringContaining('no mistakes') })
})

test('with a gateway.yaml only below upstreams that take spellings for the same', async () => {
  const rule = (name: string) =>
    `package ${name}\n\n# METADATA\n# entrypoint: true\ndecision if input.request.path == "/${name}"\n`
  const gateway = (members: string) => `version: 1
upstreams: { folding: { url: "http://localhost:1", ${members} }, plain: { url: "http://localhost:2" } }
routes:
  - { id: a, path: /a/**, auth: none, entrypoint: a/decision, upstream: folding }
  - { id: b, path: /b/**, auth: none, entrypoint: b/decision, upstream: plain }
  - { id: c, path: /c/**, auth: none, entrypoint: c/decision, upstream: plain, matrixParameters: keep }
`
  const folder = await ruleFolder({
    'rules/a.rego': rule('a'),
    'rules/b.rego': rule('b'),
    'rules/c.rego': rule('c'),
    'folding.yaml': gateway('pathEquality: { trailingSlash: ignore }'),
    'capitals.yaml': gateway('pathEquality: { case: insensitive }'),
    'plain.yaml': gateway('').replace('matrixParameters: keep', ''),
  })
  const filesOf = async (...config: string[]) => {
    const { code, lines } = await check('--path', join(folder, 'rules'), ...config)
    expect(code).toBe(0)
    return lines.flatMap((line) => /^warning: (\w+)\.rego/.exec(line)?.[1] ?? [])
  }
  expect(await filesOf('--config', join(folder, 'folding.yaml'))).toEqual(['a', 'c'])
  expect(await filesOf('--config', join(folder, 'capitals.yaml'))).toEqual(['a', 'c'])
  expect(await filesOf('--config', join(folder, 'plain.yaml'))).toEqual([])
  expect(await filesOf()).toEqual(['a', 'b', 'c'])
})

test('mistakes come first, also that there is no entrypoint', async () => {
  const folder = await ruleFolder({ 'a.rego': 'package a\n\nb if input.request.path == "/b"\n' })
  expect(await check('--path', folder)).toEqual({
    code: 1,
    lines: ['wasm compilation requires at least one entrypoint', '1 mistake'],
  })
  const broken = await ruleFolder({ 'a.rego': `${rules}\nb if nonsense\n` })
  const { code, lines } = await check('--path', broken)
  expect({ code, lines }).toEqual({ code: 1, lines: [expect.stringContaining('nonsense'), expect.any(String)] })
})
