import { join } from 'node:path'
import { expect, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { amountRules } from '../../support/body-policies.ts'
import { ruleFolder } from '../rule-folder.ts'

/** What the commands for authors of policies know of `input.request.body`. */

const run = async (...args: string[]) => {
  const lines: string[] = []
  const say = (line: string) => lines.push(line)
  return { code: await policyCommand(args, { say, complain: say }), lines, text: lines.join('\n') }
}

const rule = (name: string, body: string) =>
  `package ${name}\n\n# METADATA\n# entrypoint: true\ndecision if {\n\t${body}\n}\n`

test('check names the routes whose rules read a body that they do not get', async () => {
  const folder = await ruleFolder({
    'rules/plain.rego': rule('plain', 'input.request.body.amount <= 100'),
    'rules/helped.rego': `${rule('helped', 'small(input.request)')}\nsmall(request) if request.body.amount <= 100\n`,
    'rules/none.rego': rule('none', 'input.request.method == "GET"'),
    'gateway.yaml': `version: 1
upstreams: { api: { url: "http://localhost:1" } }
routes:
  - { id: a, path: /a, auth: none, entrypoint: plain/decision, upstream: api }
  - { id: b, path: /b, auth: none, entrypoint: helped/decision, upstream: api }
  - { id: c, path: /c, auth: none, entrypoint: none/decision, upstream: api }
  - { id: d, path: /d, auth: none, entrypoint: plain/decision, upstream: api, policyBody: { type: json } }
`,
  })
  const { code, lines } = await run(
    'check',
    ...['--path', join(folder, 'rules')],
    ...['--config', join(folder, 'gateway.yaml')],
  )
  expect([code, ...lines]).toEqual([
    0,
    'warning: the route a needs policyBody: its rule plain/decision reads input.request.body',
    'warning: the route b needs policyBody: its rule helped/decision reads input.request.body',
    '3 files: no mistakes',
  ])
  expect((await run('check', '--path', join(folder, 'rules'))).lines).toEqual(['3 files: no mistakes'])
})

const cases = `- name: little
  route: &route { id: a, auth: none, entrypoint: app/decision }
  request: { method: POST, path: /a, body: { amount: 100 } }
  expect: { status: 200, headers: { x-amount: "100" } }
- name: much
  route: *route
  request: { method: POST, path: /a, body: { amount: 101 } }
  expect: { status: 403, reason: too_much }
- name: nothing
  route: *route
  request: { method: POST, path: /a }
  expect: { status: 200, headers: { x-amount: none } }
- name: null is something
  route: *route
  request: { method: POST, path: /a, body: null }
  expect: { status: 403, reason: too_much }
`

test('cases have bodies, which routes of a gateway.yaml hand over as the gateway would', async () => {
  const folder = await ruleFolder({
    'rules/app.rego': amountRules,
    'own/a.yaml': cases,
    'routed/a.yaml': `- name: little
  request: { path: /a, body: { amount: 100 } }
  expect: { status: 200, headers: { x-amount: "100" } }
- name: much
  request: { path: /a, body: { amount: 101 } }
  expect: { status: 403, reason: too_much }
- name: long
  request: { path: /a, body: { amount: 1, text: 0123456789 } }
  expect: { status: 413, reason: content_too_large }
- name: streamed
  request: { path: /b, body: { amount: 101 } }
  expect: { status: 200, headers: { x-amount: none } }
`,
    'gateway.yaml': `version: 1
upstreams: { api: { url: "http://localhost:1" } }
policies: { entrypoint: app/decision }
routes:
  - { id: a, path: /a, auth: none, upstream: api, policyBody: { type: json, maxBytes: 20 } }
  - { id: b, path: /b, auth: none, upstream: api }
`,
  })
  const path = ['--path', join(folder, 'rules')]
  const own = await run('test', ...path, '--cases', join(folder, 'own'))
  expect(own.text).toContain('HTTP cases: 4/4 passed')
  const config = ['--config', join(folder, 'gateway.yaml')]
  const routed = await run('test', ...path, '--cases', join(folder, 'routed'), ...config)
  expect(routed.text).toContain('HTTP cases: 4/4 passed')
})
