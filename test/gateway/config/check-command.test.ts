import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { gatewayJsonSchema } from '../../../gateway/config/json-schema.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { runProcess } from '../../support/process.ts'

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

/** `surrogate gateway …` in a folder with these files. */
const run = async (args: readonly string[], files: Record<string, string> = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-check-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), content)
  }
  return runProcess(process.execPath, [surrogate, 'gateway', ...args], {
    cwd: folder,
    env: { OPA_BIN: await findOpa(), SECRET: 's3cret' },
  })
}

const right = `version: 1
issuers: [{ issuer: https://id.test, client: { id: g, secret: "\${SECRET}" }, revocations: { mode: feed } }]
upstreams: { api: { url: https://api.test } }
routes:
  - { id: orders, path: /orders/**, audience: [a], upstream: api }
`

test('a right file is said to be right, with what is allowed in it although it is insecure', async () => {
  const { code, output } = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right.replace('https://api.test', 'http://api.test').concat('allowInsecure: [http-upstream]\n'),
  })
  expect({ code, output }).toEqual({
    code: 0,
    output: 'gateway.yaml is right: 1 route, 1 issuer.\nInsecure, and allowed: http-upstream.\n',
  })
})

test('what is probably not meant is told, and no mistake', async () => {
  const routes = `
  - { id: upper, path: /Report, audience: [a], upstream: api }
  - { id: slash, path: /report/, methods: [GET], audience: [a], upstream: api }
  - { id: here, path: "/x/{id}", methods: [GET], audience: [a], upstream: api }
  - { id: all, path: "/x/**", audience: [a], upstream: api }
  - { id: there, path: "/z/{id}", methods: [GET, HEAD], audience: [a], upstream: other }
`
  const upstreams =
    '{ api: { url: https://api.test }, other: { url: "https://api.test/v2", pathEquality: { case: insensitive } }, id: { url: https://id.test/oidc }, console: { url: https://id.test, issuer: true } }'
  const { code, output } = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right.replace('{ api: { url: https://api.test } }', upstreams).concat(routes.slice(1)),
  })
  expect({ code, lines: output.trimEnd().split('\n') }).toEqual({
    code: 0,
    lines: [
      'gateway.yaml is right: 6 routes, 1 issuer.',
      'Warning: the routes upper (/Report) and slash (/report/) differ only in spelling: if the API takes both for the same, say so in upstreams.api.pathEquality and keep one of them.',
      'Warning: HEAD /x/{id} is left to the route all: if the API answers it as GET, name HEAD in the methods of here.',
      'Warning: the upstreams api and other are one server, and differ in pathEquality.',
      'Warning: the upstream id is at the address of an issuer: its cookies pass with upstreams.id.issuer: true only.',
    ],
  })
})

test('a spelling that the route of a host leaves to one for any host is told', async () => {
  const routes = `
  - { id: strong, hosts: [a.test], path: /Report, audience: [a], upstream: api }
  - { id: weak, path: /report, audience: [a], upstream: api }
  - { id: ported, hosts: ["b.test:8080"], path: /Bill/, audience: [a], upstream: api }
  - { id: named, hosts: [b.test], path: /bill/, audience: [a], upstream: api }
  - { id: elsewhere, hosts: [c.test], path: /Bill, audience: [a], upstream: api }
  - { id: same, hosts: [a.test], path: /orders/**, audience: [a], upstream: api }
  - { id: folded, hosts: [a.test], path: /Folded, audience: [a], upstream: folding }
  - { id: any, path: /folded/, audience: [a], upstream: folding }
`
  const upstreams =
    '{ api: { url: https://api.test }, folding: { url: https://f.test, pathEquality: { case: insensitive, trailingSlash: ignore } } }'
  const { code, output } = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right.replace('{ api: { url: https://api.test } }', upstreams).concat(routes.slice(1)),
  })
  expect({ code, lines: output.trimEnd().split('\n') }).toEqual({
    code: 0,
    lines: [
      'gateway.yaml is right: 9 routes, 1 issuer.',
      'Warning: the routes strong (/Report) and weak (/report) differ only in spelling: if the API takes both for the same, say so in upstreams.api.pathEquality and keep one of them.',
      'Warning: the routes ported (/Bill/) and named (/bill/) differ only in spelling: if the API takes both for the same, say so in upstreams.api.pathEquality and keep one of them.',
    ],
  })
})

test('every mistake is told as file:line:column, and no secret with it', async () => {
  const { code, output } = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right
      .replace('id: g', 'id: ""')
      .replace('https://api.test', 'http://api.test')
      .replace('path: /orders/**', 'path: /orders/**/x'),
  })
  expect(code).toBe(1)
  expect(output).toMatch(/^ {2}gateway\.yaml:2:\d+: issuers\[0\]\.client\.id: /m)
  expect(output).not.toContain('s3cret')

  const between = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right
      .replace('https://api.test', 'http://api.test')
      .replace('path: /orders/**', 'path: /orders/**/x'),
  })
  expect(between.code).toBe(1)
  expect(between.output).toMatch(/^ {2}gateway\.yaml:3:26: insecure: .*allowInsecure: \[http-upstream\]/m)
  expect(between.output).toMatch(/^ {2}gateway\.yaml:5:25: the path holds/m)
})

test('policies that do not compile, or lack the entrypoint of a route, are found', async () => {
  const file = right.concat('policies: { path: rules }\n')
  const broken = await run(['check'], { 'gateway.yaml': file, 'rules/a.rego': 'package a\n\nb if nonsense\n' })
  expect(broken).toMatchObject({ code: 1, output: expect.stringContaining('a.rego') })
  const rule = 'package other\n\n# METADATA\n# entrypoint: true\ndecision := true\n'
  const lacking = await run(['check'], { 'gateway.yaml': file, 'rules/a.rego': rule })
  expect(lacking).toMatchObject({
    code: 1,
    output: expect.stringContaining('route orders: surrogate/gateway/decision'),
  })
})

test('a key that cannot be used is found, and not shown', async () => {
  const { code, output } = await run(['check'], {
    'gateway.yaml': right.concat('identity: { issuer: gw, keyFile: key.json }\n'),
    'key.json': '{ "d": "s3cret" }',
  })
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('key.json') })
  expect(output).not.toContain('s3cret')
})

test('whatever is wrong with the files that it names is found at once: shadow policies, keys of bundles, logs', async () => {
  const rule = 'package surrogate.gateway\n\n# METADATA\n# entrypoint: true\ndecision := true\n'
  const file = right.concat(
    'policies: { path: rules, shadow: next }\n',
    'accessLog: { to: gateway.yaml/access.jsonl }\n',
    'identity: { issuer: gw, keyFile: key.json }\n',
  )
  const broken = { 'rules/a.rego': rule, 'next/a.rego': 'package a\n\nb if nonsense\n' }
  const found = await run(['check'], { 'gateway.yaml': file, ...broken })
  expect(found.code).toBe(1)
  expect(found.output).toMatch(/The policies at \S+\/next cannot be used: the policies do not compile: a\.rego:3:6/)
  expect(found.output).toContain('/gateway.yaml/access.jsonl (ENOTDIR)')
  expect(found.output).toContain('key.json')
  expect(found.output).not.toContain('/rules cannot be used')

  const missing = await run(['check'], { 'gateway.yaml': file, 'rules/a.rego': rule })
  expect(missing).toMatchObject({ code: 1, output: expect.stringMatching(/The policies at \S+\/next cannot be used/) })
})

test('the keys of bundles are read although the bundle is behind an address', async () => {
  const { code, output } = await run(['check'], {
    'gateway.yaml': right.concat(
      'policies: { bundle: https://bundles.test/b, verify: { keys: [{ id: one, algorithm: ES256, file: key.pem }] } }\n',
    ),
    'key.pem': 'no key',
  })
  expect({ code, output }).toMatchObject({
    code: 1,
    output: expect.stringMatching(/The key one for policy bundles at \S+\/key\.pem/),
  })
})

test('what is wrong with a file has the place of the member that names it', async () => {
  const pair = '{ cert: no.pem, key: no.key }'
  const { code, output } = await run(['check', 'gateway.yaml'], {
    'gateway.yaml': right.concat(
      'trustedProxies: [127.0.0.1]\n',
      `listen: { tls: { certificates: [${pair}] } }\n`,
      `extAuthz: { tls: { certificates: [{ cert: other.pem, key: no.key }] } }\n`,
      `inspection: { audience: i, tls: { certificates: [{ cert: third.pem, key: no.key }] } }\n`,
      'identity: { issuer: gw, keyFile: key.json }\n',
      'policies: { path: rules }\n',
      'accessLog: { to: gateway.yaml/access.jsonl }\n',
    ),
    'no.key': '',
    'rules/a.rego': 'package a\n\nb if nonsense\n',
  })
  const places = output.split('\n').filter((line) => line.startsWith('gateway.yaml:'))
  expect({ code, places }).toEqual({
    code: 1,
    places: [
      expect.stringMatching(/^gateway\.yaml:12:18: .*access\.jsonl/),
      expect.stringMatching(/^gateway\.yaml:7:33: The file \S+no\.pem of tls cannot be read\.$/),
      expect.stringMatching(/^gateway\.yaml:8:35: .*other\.pem/),
      expect.stringMatching(/^gateway\.yaml:9:50: .*third\.pem/),
      expect.stringMatching(/^gateway\.yaml:10:34: .*key\.json/),
      expect.stringMatching(/^gateway\.yaml:11:19: .*a\.rego:3:6/),
    ],
  })
})

test('a file that is not there', async () => {
  expect(await run(['check', 'missing.yaml'])).toMatchObject({
    code: 1,
    output: expect.stringContaining('missing.yaml'),
  })
})

test('the schema for editors is printed', async () => {
  const { code, output } = await run(['schema'])
  expect(code).toBe(0)
  expect(JSON.parse(output)).toEqual(gatewayJsonSchema())
})

test('the same insecure file does not start either', async () => {
  const { code, output } = await run([], { 'gateway.yaml': right.replace('https://api.test', 'http://api.test') })
  expect({ code, output }).toMatchObject({ code: 2, output: expect.stringContaining('allowInsecure: [http-upstream]') })
})
