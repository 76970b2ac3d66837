import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { exitCodeOf } from '../../../bin/cli/terminal.ts'
import { gatewayCommand } from '../../../bin/commands/gateway.ts'
import { freePort } from '../../support/free-port.ts'
import { startTestGateway, startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { inspectionAudience } from '../../support/inspection.ts'
import { runProcess, startProcess, type TestProcess } from '../../support/process.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/**
 * The verbs of `surrogate gateway inspect` against a gateway that is a process: in this one, but where that is what is
 * tested.
 */

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))
const secret = 'a-secret-that-nobody-may-see'

let folder: string
let issuer: TokenIssuer
let upstream: TestUpstream
let tokenEndpoint: { url: string; asked: { form: Record<string, string>; authorization: string }[]; close(): void }
let gateway: TestProcess
let file: string
let url: string
let publicUrl: string

/** Gives tokens for inspection to whoever knows the secret. */
const startTokenEndpoint = async () => {
  const asked: { form: Record<string, string>; authorization: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { authorization = '' } = request.headers
    const form = Object.fromEntries(new URLSearchParams(body))
    asked.push({ form, authorization })
    const known = authorization === `Basic ${Buffer.from(`cli:${secret}`).toString('base64')}`
    const access_token = await issuer.sign({ aud: form['resource'] ?? '', scope: form['scope'], client_id: 'cli' })
    response
      .writeHead(known ? 200 : 401, { 'content-type': 'application/json' })
      .end(
        JSON.stringify(known ? { access_token, token_type: 'Bearer', expires_in: 300 } : { error: 'invalid_client' }),
      )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    asked,
    close: () => void server.close(),
  }
}

const startGateway = async (): Promise<TestProcess> => {
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', file], { cwd: folder })
  await child.waitFor(/the gateway listens/)
  await until(async () => expect((await fetch(`${publicUrl}/orders/1`, { headers: await bearer() })).status).toBe(200))
  return child
}

const bearer = async (claims: object = {}) => ({
  authorization: `Bearer ${await issuer.sign({ scope: 'read:orders', client_id: 'c1', ...claims })}`,
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-inspect-verbs-'))
  issuer = await startTokenIssuer()
  upstream = await startUpstream()
  tokenEndpoint = await startTokenEndpoint()
  const [port, adminPort, inspectionPort] = [await freePort(), await freePort(), await freePort()]
  file = join(folder, 'gateway.yaml')
  url = `http://127.0.0.1:${inspectionPort}`
  publicUrl = `http://127.0.0.1:${port}`
  const common = { audience: ['https://api.test/orders'], upstream: 'orders' }
  const config = {
    version: 1,
    listen: { port },
    admin: { port: adminPort },
    allowInsecure: ['http-issuer', 'http-upstream', 'no-revocations'],
    inspection: { port: inspectionPort, audience: inspectionAudience },
    issuers: [{ issuer: issuer.issuer, tokenEndpoint: tokenEndpoint.url }],
    upstreams: { orders: { url: upstream.url } },
    routes: [
      { ...common, id: 'read', path: '/orders/{id}', methods: ['GET'], scopes: ['read:orders'] },
      { ...common, id: 'write', path: '/orders/{id}', methods: ['POST'], scopes: ['write:orders'] },
    ],
  }
  await writeFile(file, stringify(config))
  await writeFile(join(folder, 'offline.yaml'), stringify({ ...config, inspection: undefined }))
  gateway = await startGateway()
}, 120_000)
afterAll(async () => {
  gateway?.signalGroup('SIGKILL')
  await gateway?.exited
  tokenEndpoint?.close()
  await Promise.all([issuer?.close(), upstream?.close()])
  if (folder) await rm(folder, { recursive: true })
})

const credentials = { INSPECTION_CLIENT_ID: 'cli', INSPECTION_CLIENT_SECRET: secret }

/** A verb in this process. `output` holds what goes to stdout and to stderr. */
const inspect = async (args: string[], env: Record<string, string> = credentials) => {
  let output = ''
  const write = (text: string) => {
    output += text
  }
  const terminal = { env: { GATEWAY_CONFIG: file, ...env }, say: write, complain: write }
  const code = await gatewayCommand(['inspect', ...args], terminal).catch((error) => exitCodeOf(error, terminal))
  expect(output).not.toContain(secret)
  expect(output).not.toMatch(/eyJ[\w-]+\./)
  return { code, output }
}

const inspectAsProcess = (args: string[], env: Record<string, string> = credentials) =>
  runProcess(process.execPath, [surrogate, 'gateway', 'inspect', ...args], { cwd: folder, env })

/** The id of a refused request. */
const refused = async (path: string, init: RequestInit = {}): Promise<string> => {
  const answer = await fetch(publicUrl + path, { headers: await bearer(), ...init })
  await answer.text()
  return answer.headers.get('x-request-id')!
}

test('routes, with a token of client credentials that is good for nothing else', async () => {
  const { code, output } = await inspectAsProcess(['routes'])
  expect(output).toMatch(
    /^ROUTE +HOST +METHODS +PATH +UPSTREAM +SCOPES +IMPERSONATION\nread +any +GET +\/orders\/\{id\} +orders +read:orders +allow\nwrite /,
  )
  expect(code).toBe(0)
  const form = { grant_type: 'client_credentials', resource: inspectionAudience, scope: 'inspect' }
  expect(tokenEndpoint.asked.at(-1)?.form).toEqual(form)
})

test('routes of more pages than one', async () => {
  const routes = Array.from({ length: 1_001 }, (_, at) => ({
    id: `r${at}`,
    path: `/r${at}`,
    auth: 'none',
    upstream: 'orders',
  }))
  const other = await startTestGateway({
    config: () => ({ inspection: { port: 0, audience: inspectionAudience }, routes }),
  })
  onTestFinished(() => other.close())
  const token = await other.issuer.sign({ aud: inspectionAudience, scope: 'inspect', client_id: 'cli' })
  const { code, output } = await inspect(['routes', '--url', other.inspectionUrl!, '--json'], {
    INSPECTION_TOKEN: token,
  })
  expect(code).toBe(0)
  const told: { routes: { id: string }[] } = JSON.parse(output)
  expect(new Set(told.routes.map(({ id }) => id))).toEqual(new Set(routes.map(({ id }) => id)))
})

test('match: 0 with the route, 1 without one, and near misses', async () => {
  expect(await inspect(['match', 'https://api.test/orders/7'])).toEqual({
    code: 0,
    output: 'GET https://api.test/orders/7: read\n  {id} = "7"\n\nNear misses\n  write takes POST only\n',
  })
  const none = await inspect(['match', 'delete', 'https://api.test/orders/7'])
  expect(none.code).toBe(1)
  expect(none.output).toContain('no route takes it\n\nNear misses\n  read takes GET only\n  write takes POST only\n')
  const dots = await inspect(['match', 'GET', 'https://api.test/orders/../admin'])
  expect(dots).toMatchObject({ code: 1, output: expect.stringContaining('refused. The path holds a dot segment.') })
  const json = await inspect(['match', 'https://api.test/orders/7', '--json'])
  expect(JSON.parse(json.output)).toMatchObject({ route: 'read', params: { id: '7' } })
})

test('match and routes work on the file alone', async () => {
  const offline = ['--config', join(folder, 'offline.yaml')]
  const matched = await inspect(['match', 'https://api.test/orders/7', ...offline], {})
  expect(matched.code).toBe(0)
  expect(matched.output).toContain('offline.yaml; no running gateway was asked.\n')
  expect(matched.output).toContain('GET https://api.test/orders/7: read\n')
  expect((await inspect(['match', 'https://api.test/nothing/at/all', '--offline'], {})).code).toBe(1)
  expect((await inspect(['routes', '--offline', '--json'], {})).output).toContain('"id": "read"')
  expect(await inspect(['decisions', ...offline])).toMatchObject({
    code: 2,
    output: expect.stringContaining('configures no inspection'),
  })
})

test('decisions and why, found by the id of a request', async () => {
  const id = await refused('/orders/7', { method: 'POST' })
  const { output } = await until(async () => {
    const found = await inspect(['decisions', '--verdict', 'denied', '--route', 'write', '--limit', '1'])
    expect(found.output).toContain(id)
    return found
  })
  expect(output).toMatch(
    /WHEN +STATUS +METHOD +TARGET .*\n\d* ?\w+( ago)? +401 +POST +127\.0\.0\.1:\d+\/orders\/7 +write +u1 +insufficient_scope /,
  )
  const why = await inspect(['why', id])
  expect(why.code).toBe(0)
  expect(why.output).toContain(`/orders/7: 401 insufficient_scope, `)
  expect(why.output).toContain('The token lacks write:orders, which the route write needs.')
  expect(why.output).toMatch(
    /It would have been allowed\n {2}with the scope write:orders\n {2}as GET .*, by the route read\n/,
  )
  expect(why.output).toMatch(/Token\n {2}subject +u1\n {2}client +c1\n/)
  expect(JSON.parse((await inspect(['why', id, '--json'])).output)).toMatchObject({ request: id, route: 'write' })
  expect(await inspect(['why', 'nobody-knows'])).toMatchObject({ code: 1 })
  expect(output + why.output, 'no colours where nobody looks').not.toContain('\u001b')
})

test('what callers send does not reach the terminal as it is', async () => {
  const headers = await bearer({ sub: 'u\u001b[2J\u202eevil' })
  const id = await refused('/orders/8', { method: 'POST', headers })
  await until(async () => {
    const { output } = await inspect(['why', id])
    expect(output).toContain('u?[2J?evil')
  })
})

test('a token by file or environment; a bad one, none, and no gateway', async () => {
  const good = await issuer.sign({ aud: inspectionAudience, scope: 'inspect' })
  await writeFile(join(folder, 'token'), `${good}\n`)
  expect((await inspect(['routes', '--token-file', join(folder, 'token')], {})).code).toBe(0)
  expect((await inspect(['routes', '--url', url], { INSPECTION_TOKEN: good })).code).toBe(0)
  const foreign = await issuer.sign({ scope: 'inspect' })
  expect(await inspect(['routes'], { INSPECTION_TOKEN: foreign })).toMatchObject({
    code: 2,
    output: expect.stringContaining('refuses the token: The token is for another audience.'),
  })
  expect(await inspect(['routes'], { INSPECTION_TOKEN: 'two\nlines' })).toMatchObject({ code: 2 })
  expect(await inspect(['routes'], {})).toMatchObject({
    code: 2,
    output: expect.stringContaining('A token is needed to inspect a gateway.'),
  })
  expect(await inspect(['routes'], { ...credentials, INSPECTION_CLIENT_ID: 'other' })).toMatchObject({
    code: 2,
    output: expect.stringMatching(/gave other no token: invalid_client\.\nLook at INSPECTION_CLIENT_ID /),
  })
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const absent = await inspect(['routes', '--url', nowhere], { INSPECTION_TOKEN: good })
  expect(absent).toMatchObject({ code: 3, output: expect.stringContaining(`does not answer at ${nowhere}`) })
  expect((await inspectAsProcess(['tail', '--url', nowhere], { INSPECTION_TOKEN: good })).code).toBe(3)
  const usage = [
    ['wy', 'x'],
    ['why'],
    ['routes', '--sid', 'x'],
    ['match', 'nowhere'],
    ['--url', url],
    ['why', 'x', '--admin', url],
  ]
  const codes = await Promise.all(usage.map(async (args) => (await inspect(args)).code))
  expect(codes).toEqual(usage.map(() => 2))
  expect(await inspectAsProcess(['wy', 'x'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('did you mean why?'),
  })
  expect((await inspect(['why'])).output).toContain('Usage: surrogate gateway inspect why <request id>')
  await writeFile(join(folder, 'empty'), '\n')
  expect(await inspect(['routes', '--token-file', join(folder, 'empty')], {})).toMatchObject({
    code: 2,
    output: expect.stringContaining('empty holds no token.'),
  })
  expect(await inspect(['decisions', '--verdict', 'refused'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('verdict must be one of allowed, denied, failed.'),
  })
})

test('tail goes on over a restart of the gateway, and ends with 0 on Ctrl-C', async () => {
  const tail = startProcess(process.execPath, [surrogate, 'gateway', 'inspect', 'tail', '--verdict', 'denied'], {
    cwd: folder,
    env: credentials,
  })
  onTestFinished(async () => {
    tail.signalGroup('SIGKILL')
    await tail.exited
  })
  // Until the stream is open, decisions pass it by.
  await until(async () => {
    await refused('/orders/9', { method: 'POST' })
    expect(tail.output()).toMatch(/401 {2}POST .*\/orders\/9 {2}write {2}u1 {2}insufficient_scope/)
  })
  expect(tail.output()).not.toContain('/orders/1 ')
  gateway.signal('SIGTERM')
  await gateway.exited
  await tail.waitFor(/The gateway went away; trying again\./)
  gateway = await startGateway()
  await tail.waitFor(/The stream goes on; decisions of the meantime are missing here\./)
  const id = await refused('/orders/10', { method: 'POST' })
  await tail.waitFor(new RegExp(`/orders/10 .*${id}`))
  tail.signal('SIGINT')
  expect(await tail.exited).toEqual({ code: 0, signal: null })
  expect(tail.output()).not.toContain(secret)
}, 120_000)
