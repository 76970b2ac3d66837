import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { Agent, request as requestTls } from 'node:https'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { createAuthority } from '../../support/certificates.ts'
import { ask, runPolicyCommand, startPolicyServer } from '../../support/policy-server.ts'
import { until } from '../../support/until.ts'
import { writeFiles } from '../rule-folder.ts'
import { rules } from './rules.ts'

let folder: string
let source: string
const file = (name: string) => join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-policy-serve-'))
  source = file('rules')
  await writeFiles(source, rules)
  await writeFile(file('tokens'), `# who may ask\n\n${token}\n${otherToken}\r\n`)
})
afterAll(() => rm(folder, { recursive: true }))

const token = 'a-token-that-is-long-enough'
const otherToken = 'another-token-that-is-long-enough'
const asked = { path: '/v1/data/testmod/decision/allow', body: '{"input": {"user": "alice"}}' }

const start = async (...args: string[]) => {
  const server = await startPolicyServer(source, args)
  onTestFinished(async () => {
    await server.stop()
  })
  return server
}

test.each([
  [['--addr', '0.0.0.0:8181'], /0\.0\.0\.0:8181 is reached from elsewhere: name who may ask with --token-file/],
  [['--addr', ':8181'], /:8181 is reached from elsewhere/],
  [['--addr', '[::]:8181'], /is reached from elsewhere/],
  [['--addr', 'policies.example:8181'], /is reached from elsewhere/],
  [['--addr', '8181'], /8181 is no address/],
  [['--addr', '127.0.0.1:99999'], /is no address/],
  [['--tls-cert-file', 'cert.pem'], /belong together/],
  [['--max-input', '0'], /--max-input must be a whole number from 1/],
  [['--units', '1.5'], /--units must be a whole number/],
  [['--decision-log-mask', '/input/a'], /belongs to --decision-log/],
  [['--decision-log', 'stdout', '--decision-log-mask', 'input'], /is no JSON pointer/],
  [['other'], /name one folder or bundle/],
  [['--port', '1'], /Unknown option/],
])('%j is a mistake of usage', async (args, message) => {
  const lines: string[] = []
  const complain = (line: string) => void lines.push(line)
  expect(await policyCommand(['serve', source, ...args], { complain })).toBe(2)
  expect(lines.join('\n')).toMatch(message)
})

test.each([
  [['--token-file', 'nowhere'], /The token file nowhere cannot be read \(ENOENT\)/],
  [['--decision-log', '/proc/nowhere'], /The decision log cannot be opened/],
])('%j names a file that cannot be used', async (args, message) => {
  const { code, output } = await runPolicyCommand(['serve', source, ...args])
  expect(output).toMatch(message)
  expect(code).toBe(2)
})

test('a port that is taken is told with the option that moves it', async () => {
  const server = await start()
  expect(await runPolicyCommand(['serve', source, '--addr', `127.0.0.1:${server.port}`])).toMatchObject({
    code: 2,
    output: expect.stringMatching(new RegExp(`Port ${server.port} is in use[\\s\\S]*--addr`)),
  })
})

test('a token file without a token is one too, and rules that do not compile are told with their place', async () => {
  await writeFile(file('short'), '# none\nshort\nhas a space in it\n')
  expect(await runPolicyCommand(['serve', source, '--token-file', file('short')])).toMatchObject({
    code: 2,
    output: expect.stringContaining('holds no token'),
  })
  await writeFiles(file('broken'), { 'a.rego': 'package a\n\nx := y\n' })
  expect(await runPolicyCommand(['serve', file('broken')])).toMatchObject({
    code: 1,
    output: expect.stringContaining('a.rego:3:6: var y is unsafe'),
  })
})

test('with a token file only its tokens are answered, health excepted, and a change counts', async () => {
  const server = await start('--token-file', file('tokens'), '--addr', '0.0.0.0:0')
  const url = `http://127.0.0.1:${server.port}`
  const statusWith = async (authorization?: string | string[]) =>
    (await ask(url, { ...asked, ...(authorization !== undefined && { headers: { authorization } }) })).status
  expect(server.output()).toContain('without TLS')

  const refused = await ask(url, asked)
  expect(refused).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
  expect(refused.headers['www-authenticate']).toBe('Bearer')
  expect(await statusWith(`Bearer ${token}`)).toBe(200)
  expect(await statusWith(`bearer ${otherToken}`)).toBe(200)
  for (const wrong of [
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    'Bearer ',
    'Bearer',
    token,
    `Basic ${token}`,
    `Bearer ${token} ${token}`,
    'Bearer # who may ask',
    `Bearer ${'a'.repeat(9_000)}`,
  ])
    expect(await statusWith(wrong), wrong).toBe(401)
  expect(await statusWith([`Bearer ${token}`, `Bearer ${token}x`])).toBe(401)

  const open = async (path: string) => (await ask(url, { path })).status
  expect(await open('/health')).toBe(200)
  expect(await open('/health/live')).toBe(200)
  for (const path of ['/metrics', '/v1/data/testmod/arr', '/v1/policies', '/', '/nowhere', '/healthz'])
    expect(await open(path), path).toBe(401)

  const replace = async (content: string) => {
    await writeFile(file('tokens.new'), content)
    await rename(file('tokens.new'), file('tokens'))
  }
  onTestFinished(() => replace(`${token}\n${otherToken}\n`))
  await replace('a-third-token-that-is-long-enough\n')
  await until(async () => expect(await statusWith('Bearer a-third-token-that-is-long-enough')).toBe(200))
  expect(await statusWith(`Bearer ${token}`)).toBe(401)
  await replace('')
  await until(async () => expect(await statusWith('Bearer a-third-token-that-is-long-enough')).toBe(401))
  expect(server.output()).not.toMatch(/that-is-long-enough/)
})

test('TLS as OPA’s options name it', async () => {
  const authority = createAuthority()
  onTestFinished(authority.remove)
  const { cert, key } = authority.issue('localhost')
  await writeFiles(folder, { 'cert.pem': cert, 'key.pem': key })
  const server = await start('--tls-cert-file', file('cert.pem'), '--tls-private-key-file', file('key.pem'))
  expect(server.url).toMatch(/^https:/)
  const agent = new Agent({ ca: authority.certificate })
  const status = await new Promise((resolve, reject) => {
    requestTls(`${server.url}/health`, { agent, servername: 'localhost' }, (answer) => resolve(answer.statusCode))
      .on('error', reject)
      .end()
  })
  expect(status).toBe(200)
  agent.destroy()
})

test('rules that change are in force whole or not at all, while everybody is answered', async () => {
  await writeFiles(file('changing'), { 'a.rego': versionRule(1) })
  const server = await startPolicyServer(file('changing'))
  const version = async () => {
    const answer = await ask(server.url, { path: '/v1/data/a/version', body: '{"input": {}}' })
    expect(answer.status).toBe(200)
    return (answer.body as { result: number }).result
  }
  const seen: number[] = []
  let asking = true
  const caller = (async () => {
    while (asking) seen.push(await version())
  })()
  await writeFiles(file('changing'), { 'a.rego': 'package a\n\nversion := nothing\n' })
  await until(() => expect(server.output()).toContain('policies not reloaded; the last good ones keep running'))
  expect(await version()).toBe(1)
  await writeFiles(file('changing'), { 'a.rego': versionRule(2) })
  await until(() => expect(seen.at(-1)).toBe(2))
  asking = false
  await caller
  expect(seen).toEqual(seen.toSorted((one, other) => one - other))
  expect((await server.stop()).code).toBe(0)
})

const versionRule = (version: number) => `package a\n\n# METADATA\n# entrypoint: true\nversion := ${version}\n`

test('a bundle is served without its rules, and explanations need those', async () => {
  expect((await runPolicyCommand(['build', '--path', source, '--output', file('bundle.tar.gz')])).code).toBe(0)
  const server = await startPolicyServer(file('bundle.tar.gz'))
  expect(await ask(server.url, asked)).toMatchObject({ status: 200, body: { result: true } })
  const explained = await ask(server.url, { ...asked, path: `${asked.path}?explain=notes` })
  expect(explained).toMatchObject({ status: 400, body: { message: expect.stringContaining('folder of rules') } })
  expect((await server.stop()).code).toBe(0)
})

test('decisions are logged as OPA does, masked, and answers carry their ids', async () => {
  const log = file('decisions.log')
  const server = await start('--decision-log', log, '--decision-log-mask', '/input/password')
  const path = '/v1/data/testmod/whole'
  const { body } = await ask(server.url, { path, body: '{"input": {"user": "alice", "password": "hunter2"}}' })
  expect(body).toMatchObject({ result: { password: 'hunter2' }, decision_id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
  await ask(server.url, { path: '/v1/data/testmod/conflict', body: '{"input": {"a": true, "b": true}}' })
  await ask(server.url, { path: '/v0/data/testmod/undef', body: '{}' })
  const lines = async () =>
    (await readFile(log, 'utf8'))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  await until(async () => expect(await lines()).toHaveLength(3))
  const [first, second, third] = await lines()
  expect(first).toEqual({
    labels: { id: expect.any(String) },
    decision_id: (body as { decision_id: string }).decision_id,
    bundles: { policies: { revision: expect.any(String) } },
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    path: 'testmod/whole',
    input: { user: 'alice' },
    result: { user: 'alice', password: 'hunter2' },
    requested_by: '127.0.0.1',
    metrics: expect.objectContaining({ timer_server_handler_ns: expect.any(Number) }),
    erased: ['/input/password'],
  })
  expect(second).toMatchObject({ path: 'testmod/conflict', error: { message: expect.any(String) } })
  expect(third).toMatchObject({ path: 'testmod/undef', input: {} })
  expect(third).not.toHaveProperty('result')

  await rename(log, file('old.log'))
  server.signal('SIGHUP')
  await until(async () => {
    await ask(server.url, asked)
    expect((await lines()).length).toBeGreaterThan(0)
  })
})

test('SIGTERM lets a request finish that has begun, and kill -9 leaves nothing behind', async () => {
  const server = await startPolicyServer(source)
  const socket = createConnection(server.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  const { length } = asked.body
  socket.write(`POST ${asked.path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  await until(async () => expect((await ask(server.url, { path: '/health' })).status).toBe(200))
  server.signal('SIGTERM')
  await server.waitFor(/stopping; the same signal again/)
  socket.write(asked.body)
  await ended
  expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*\{"result":true\}\n$/)
  expect((await server.exited).code).toBe(0)

  const killed = await startPolicyServer(source, ['--addr', `127.0.0.1:${server.port}`])
  killed.signal('SIGKILL')
  await killed.exited
  const again = await startPolicyServer(source, ['--addr', `127.0.0.1:${server.port}`])
  expect((await ask(again.url, asked)).status).toBe(200)
  await again.stop()
})
