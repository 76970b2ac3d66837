import type { LookupAddress } from 'node:dns'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type ClaimsFetchOptions, createClaimsFetch } from '../../../issuer/claims/sandbox/outbound-fetch.ts'
import { createClaimsSandbox } from '../../../issuer/claims/sandbox/sandbox.ts'
import { loadIssuerConfig } from '../../../issuer/config.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import { claimsScript } from '../../support/claims-script.ts'
import { pour } from '../../support/raw-receiver.ts'

/** What scripts reach by `fetch`. */

let port: number
let answer: (request: IncomingMessage, response: ServerResponse) => void
let asked: string[]
// A server for each test: what a script has sent and nobody waits for may come when the next test runs.
beforeEach(async () => {
  asked = []
  answer = (_request, response) => response.end('{"plan":"gold"}')
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  return async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 })

/** A sandbox that may ask `users.test` on the server's port, which is at a loopback address. */
const startSandbox = async (options: Partial<ClaimsFetchOptions> = {}) => {
  const claimsFetch = createClaimsFetch({
    hosts: [`users.test:${port}`],
    allowedNetworks: ['127.0.0.0/8'],
    allowHttp: true,
    resolve: async () => [address('127.0.0.1')],
    ...options,
  })
  const sandbox = createClaimsSandbox({ workers: 1, fetch: claimsFetch.fetch })
  onTestFinished(async () => {
    await sandbox.close()
    await claimsFetch.close()
  })
  await sandbox.start()
  return async (body: string) => {
    const { outcome } = await sandbox.run({
      script: claimsScript(`const url = 'http://users.test:${port}'\n${body}`),
      input: '{"token":{},"context":{}}',
      environmentVariables: {},
      owner: 'somebody',
    })
    return 'returned' in outcome ? JSON.parse(outcome.returned ?? 'null') : outcome
  }
}

const failed = (message: string) => ({ failed: 'error', message: expect.stringContaining(message) })

describe('an allowed host', () => {
  test('answers with status, headers and body; api.fetch and fetch are the same', async () => {
    const run = await startSandbox()
    answer = (_request, response) => response.writeHead(201, { 'X-Plan': 'gold' }).end('{"a":[1]}')
    const body = `const answer = await api.fetch(url + '/plans/1?x=1'); const same = fetch === api.fetch
      return { ok: answer.ok, status: answer.status, plan: answer.headers['x-plan'], json: await answer.json(), text: await answer.text(), same }`
    expect(await run(body)).toEqual({
      ok: true,
      status: 201,
      plan: 'gold',
      json: { a: [1] },
      text: '{"a":[1]}',
      same: true,
    })
    expect(asked).toEqual(['GET /plans/1?x=1'])
  })

  test('is sent method, headers and body', async () => {
    const run = await startSandbox()
    answer = (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () =>
        response.end(JSON.stringify({ key: request.headers['x-key'], body: String(Buffer.concat(chunks)) })),
      )
    }
    const body = `return await (await fetch(url, { method: 'POST', headers: { 'X-Key': 'k' }, body: '{"id":1}' })).json()`
    expect(await run(body)).toEqual({ key: 'k', body: '{"id":1}' })
  })

  test('may take its time without the script using up any of its own', async () => {
    const run = await startSandbox()
    answer = (_request, response) => void setTimeout(() => response.end('{"plan":"gold"}'), 250)
    expect(await run('await fetch(url); return await (await fetch(url)).json()')).toEqual({ plan: 'gold' })
  })

  test('that is slow holds up nobody but who asks it', async () => {
    const waiting: (() => void)[] = []
    const sandbox = createClaimsSandbox({
      workers: 1,
      limits: { wallMs: 30_000 },
      fetch: () => new Promise((resolve) => waiting.push(() => resolve({ status: 200, headers: {}, body: '{}' }))),
    })
    onTestFinished(() => sandbox.close())
    const run = async (body: string) => {
      const script = claimsScript(body)
      return (await sandbox.run({ script, input: '{}', environmentVariables: {}, owner: 'somebody' })).outcome
    }
    const slow = [1, 2].map(() => run('await fetch("https://users.test"); return { asked: true }'))
    await expect.poll(() => waiting.length).toBe(2)
    expect(await run('return { asked: false }')).toEqual({ returned: '{"asked":false}' })
    for (const answer of waiting) answer()
    expect(await Promise.all(slow)).toEqual([{ returned: '{"asked":true}' }, { returned: '{"asked":true}' }])
  })

  test('a redirect is an answer, and not followed', async () => {
    const run = await startSandbox()
    answer = (_request, response) => response.writeHead(302, { location: `http://127.0.0.1:${port}/inner` }).end()
    expect(await run('const { status, ok } = await fetch(url); return { status, ok }')).toEqual({
      status: 302,
      ok: false,
    })
    expect(asked).toEqual(['GET /'])
  })
})

describe('bounds', () => {
  test('two requests a call', async () => {
    const run = await startSandbox()
    const body = `const all = await Promise.allSettled([1, 2, 3].map((n) => fetch(url + '/' + n)))
      return { all: all.map(({ status, reason }) => reason?.message ?? status) }`
    expect(await run(body)).toEqual({ all: ['fulfilled', 'fulfilled', 'No more than 2 requests can be made.'] })
    expect(asked.toSorted()).toEqual(['GET /1', 'GET /2'])
  })

  test.each([
    [
      'an extension of a chunk',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=',
      'y',
      'The body of the answer is too large.',
    ],
    ['a header field', 'HTTP/1.1 200 OK\r\nx:', ' ', 'The answer has too many or too large header fields.'],
    ['interim answers', '', 'HTTP/1.1 102 Processing\r\n\r\n', 'The answer comes after more than 20 interim answers.'],
  ])('%s without end is cut off, not timed out', async (_name, beginning, rest, message) => {
    const run = await startSandbox()
    answer = (_request, { socket }) => {
      socket!.write(beginning)
      pour(socket!, rest, Number.POSITIVE_INFINITY)
    }
    expect(await run('await fetch(url)')).toEqual(failed(message))
  })

  test('an answer without end is cut off, a slow one is not waited for', async () => {
    const run = await startSandbox()
    answer = (_request, response) => {
      const more = () => response.write('x'.repeat(65_536), () => response.destroyed || setImmediate(more))
      more()
    }
    expect(await run('await fetch(url)')).toEqual(failed('TypeError: The answer is larger than 65536 bytes.'))
    answer = () => {}
    expect(await run('await fetch(url)')).toEqual(failed('There was no whole answer within 500 ms.'))
    answer = (_request, response) => {
      const drip = setInterval(() => response.write('x'), 50)
      response.on('close', () => clearInterval(drip))
    }
    expect(await run('await fetch(url)')).toEqual(failed('There was no whole answer within 500 ms.'))
  })

  test('requests without end are refused inside, and use up the time of the script', async () => {
    const run = await startSandbox()
    expect(await run('for (;;) fetch(url).catch(() => {})')).toMatchObject({
      failed: expect.stringMatching(/^(cpu|memory)$/),
    })
    const many = 'await Promise.allSettled(Array.from({ length: 5000 }, () => fetch(url))); return { done: true }'
    expect([{ done: true }, expect.objectContaining({ failed: 'cpu' })]).toContainEqual(await run(many))
    expect(asked.length).toBeLessThanOrEqual(4)
  })

  test('a request that is too large does not leave the thread', async () => {
    const run = await startSandbox()
    const large = 'The request is too large.'
    expect(await run(`await fetch(url, { method: 'POST', body: 'x'.repeat(1e6) })`)).toEqual(failed(large))
    const headers = 'Object.fromEntries(Array.from({ length: 1e4 }, (_, n) => ["x-" + n, "a value"]))'
    expect(await run(`await fetch(url, { headers: ${headers} })`)).toEqual(failed(large))
    expect(await run(`await fetch(url, { method: 'POST', body: 'x'.repeat(1e5) })`)).toEqual(
      failed('The body is too large.'),
    )
    expect(asked).toEqual([])
  })

  test('a request that the script forged is none', async () => {
    const run = await startSandbox()
    const unreadable = 'The request cannot be read.'
    const forged = ['undefined', 'null', '7', '{}', '{ url, method: "GET", headers: { host: ["a", "b"] } }', '[url]']
    for (const value of forged) {
      const once = `let first = true; Object.prototype.toJSON = function () { if (!first || !this.url) return this; first = false; return ${value} }`
      expect(await run(`${once}; await fetch(url)`)).toEqual(failed(unreadable))
    }
    expect(asked).toEqual([])
  })

  test('the connection is ours: no other method, host or framing', async () => {
    const run = await startSandbox()
    expect(await run(`await fetch(url, { method: 'CONNECT' })`)).toEqual(failed('The method must be GET or POST.'))
    for (const name of ['Host', 'Transfer-Encoding', 'content-length', 'Connection']) {
      expect(await run(`await fetch(url, { headers: { '${name}': 'x' } })`)).toEqual(failed('cannot be set'))
    }
    expect(await run(`await fetch(url, { headers: { 'x-a': 'a\\r\\nx-b: b' } })`)).toEqual(
      failed('could not be reached'),
    )
    expect(asked).toEqual([])
  })

  test('a script that denies while it waits has denied', async () => {
    const run = await startSandbox()
    answer = () => {}
    expect(await run('fetch(url); api.denyAccess("no")')).toEqual({ denied: 'no' })
  })
})

describe('everything else is refused', () => {
  test.each([
    'http://other.test/',
    'http://users.test/',
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://169.254.169.254/latest/meta-data',
    'http://users.test.evil.test/',
    'http://users.test@evil.test/',
    'file:///etc/passwd',
    'data:text/plain,x',
    'not a URL',
  ])('%s', async (url) => {
    const run = await startSandbox()
    expect(await run(`await fetch('${url}')`)).toMatchObject({
      failed: 'error',
      message: expect.stringMatching(/^TypeError: /),
    })
    expect(asked).toEqual([])
  })

  test('an allowed name that leads into a network that is not allowed', async () => {
    for (const inner of ['127.0.0.1', '169.254.169.254', '10.0.0.1', '::1', '::ffff:127.0.0.1']) {
      const run = await startSandbox({ allowedNetworks: [], resolve: async () => [address(inner)] })
      expect(await run('await fetch(url)')).toEqual(failed('has no address that is allowed'))
    }
    expect(asked).toEqual([])
  })

  test('a name that changes its address after it was looked at', async () => {
    let turn = 0
    const run = await startSandbox({
      allowedNetworks: ['127.0.0.2/32'],
      resolve: async () => [address(turn++ === 0 ? '127.0.0.2' : '127.0.0.1')],
    })
    answer = (_request, response) => response.writeHead(200, { connection: 'close' }).end('{}')
    const body = `const all = []; for (const n of [1, 2]) await fetch(url).then(() => all.push('reached'), ({ message }) => all.push(message)); return { all }`
    const { all } = await run(body)
    expect(all[1]).toMatch(/has no address that is allowed/)
    expect(asked.length).toBeLessThanOrEqual(1)
  })

  test('an allowed host in plain http, unless that is allowed too', async () => {
    const run = await startSandbox({ allowHttp: false })
    expect(await run('await fetch(url)')).toEqual(failed('The URL must start with https://.'))
  })

  test('everything, when no host is allowed', async () => {
    const sandbox = createClaimsSandbox({ workers: 1 })
    onTestFinished(() => sandbox.close())
    const script = 'const getCustomJwtClaims = async ({ api }) => ({ seen: [typeof fetch, typeof api.fetch] })'
    const { outcome } = await sandbox.run({ script, input: '{}', environmentVariables: {}, owner: 'somebody' })
    expect(outcome).toEqual({ returned: '{"seen":["undefined","undefined"]}' })
  })
})

test('the settings are hosts and networks', () => {
  const load = (settings: Record<string, string>) =>
    loadIssuerConfig({ KEY_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'), ...settings }).claims
  expect(load({})).toEqual({ workers: undefined, fetch: { hosts: [], allowedNetworks: [], allowHttp: false } })
  expect(
    load({
      CLAIMS_WORKERS: '3',
      CLAIMS_FETCH_HOSTS: 'Users.test, [fd00::1]:8443',
      CLAIMS_FETCH_ALLOWED_NETWORKS: 'fd00::/8',
      CLAIMS_FETCH_ALLOW_HTTP: 'true',
    }),
  ).toEqual({
    workers: 3,
    fetch: { hosts: ['users.test', '[fd00::1]:8443'], allowedNetworks: ['fd00::/8'], allowHttp: true },
  })
  const wrong: Record<string, string>[] = [
    { CLAIMS_FETCH_HOSTS: 'https://users.test' },
    { CLAIMS_FETCH_HOSTS: '*.test' },
    { CLAIMS_FETCH_HOSTS: 'users.test/path' },
    { CLAIMS_FETCH_ALLOWED_NETWORKS: 'users.test' },
    { CLAIMS_WORKERS: '0' },
  ]
  for (const settings of wrong) {
    expect(() => load(settings)).toThrow(StartupError)
  }
})
