import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, fetch as fetchWith } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { fileSource, parseGatewayConfig } from '../../gateway/config/load.ts'
import { createReloads } from '../../gateway/reload.ts'
import { createLogger, silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { startTestGateway, startUpstream, type TestGateway } from '../support/gateway.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/until.ts'
import { openWebSocket, startWebSocketApi } from '../support/websocket-api.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const newFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-gateway-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  return folder
}

const publicRoute = (id: string, path: string) => ({ id, path, auth: 'none', upstream: 'orders' })

const start = async (options: Parameters<typeof startTestGateway>[0] = {}): Promise<TestGateway & { file: string }> => {
  const file = options.file ?? join(await newFolder(), 'gateway.yaml')
  const gateway = await startTestGateway({
    ...options,
    file,
    config: (parts) => ({ routes: [publicRoute('a', '/a/**')], ...options.config?.(parts) }),
  })
  cleanup.push(() => gateway.close())
  return { ...gateway, file }
}

const statusOf = async (gateway: TestGateway, path: string) => {
  const answer = await fetch(gateway.url + path)
  await answer.bytes()
  return answer.status
}
const configurationCheck = async (gateway: TestGateway) =>
  (await gateway.health.ready()).checks['gateway configuration']!
const metric = async (gateway: TestGateway, name: string) =>
  (await gateway.metrics.render()).text.split('\n').find((line) => line.startsWith(`${name} `))

describe('a changed gateway.yaml', () => {
  test('counts from the next request on, without anybody asking for it', async () => {
    const gateway = await start()
    expect([await statusOf(gateway, '/a/1'), await statusOf(gateway, '/b/1')]).toEqual([200, 404])
    await gateway.write({ routes: [publicRoute('b', '/b/**')] })
    await until(async () => expect(await statusOf(gateway, '/b/1')).toBe(200))
    expect(await statusOf(gateway, '/a/1')).toBe(404)
    expect(await metric(gateway, 'surrogate_gateway_config_reloads_total{outcome="ok"}')).toMatch(/ 1$/)
  })

  test('is seen behind a replaced link, as Kubernetes mounts files', async () => {
    const folder = await newFolder()
    const file = join(folder, 'gateway.yaml')
    const gateway = await start({ file })
    // The first version moves behind a link; the second one takes its place by the link.
    await rename(file, join(folder, 'first.yaml'))
    await symlink('first.yaml', file)
    await gateway.reload()
    const text = stringify({
      version: 1,
      listen: { port: 0 },
      upstreams: { orders: { url: gateway.upstream.url } },
      routes: [publicRoute('b', '/b/**')],
    })
    await writeFile(join(folder, 'second.yaml'), text)
    await symlink('second.yaml', `${file}.new`)
    await rename(`${file}.new`, file)
    expect(await readlink(file)).toBe('second.yaml')
    await until(async () => expect(await statusOf(gateway, '/b/1')).toBe(200))
  })

  test.each<[string, string, string]>([
    ['is not YAML', 'version: 1\nroutes: [', ':2:'],
    ['has an unknown key', 'version: 1\nrutes: []\n', ':2:1: unknown key rutes'],
    [
      'has routes that tie',
      `version: 1
upstreams: { u: { url: http://localhost:1 } }
routes:
  - { id: one, path: "/x/{a}", auth: none, upstream: u }
  - { id: two, path: "/x/{b}", auth: none, upstream: u }
`,
      ':5:22: the routes one and two tie',
    ],
    [
      'names a rule that does not exist',
      `version: 1
upstreams: { u: { url: http://localhost:1 } }
routes: [{ id: one, path: /x, auth: none, upstream: u, entrypoint: no/such }]
`,
      'no/such',
    ],
  ])('that %s changes nothing, and is told by line and column', async (_what, text, problem) => {
    const lines: string[] = []
    const logger = createLogger({
      name: 'test',
      level: 'error',
      destination: { write: (line: string) => lines.push(line) },
    })
    const gateway = await start({ logger })
    const before = await configurationCheck(gateway)
    await gateway.write(text)
    await gateway.reload()
    expect(await statusOf(gateway, '/a/1')).toBe(200)
    const { ok, detail } = await configurationCheck(gateway)
    expect(ok).toBe(true)
    expect(detail).toContain(problem)
    expect(detail).toContain(`${before.detail} keeps running`)
    expect(await metric(gateway, 'surrogate_gateway_config_stale')).toMatch(/ 1$/)
    expect(JSON.parse(lines[0]!)).toMatchObject({ problem: expect.stringContaining(problem) })

    await gateway.write({})
    await gateway.reload()
    expect(await configurationCheck(gateway)).toEqual(before)
    expect(await metric(gateway, 'surrogate_gateway_config_stale')).toMatch(/ 0$/)
  })

  test('counts also when it was changed while the gateway started', async () => {
    const file = join(await newFolder(), 'gateway.yaml')
    const text = (path: string) =>
      stringify({
        version: 1,
        upstreams: { orders: { url: 'http://127.0.0.1:1' } },
        routes: [publicRoute('a', path)],
      })
    await writeFile(file, text('/late'))
    const applied: string[] = []
    const reloads = createReloads({
      file,
      running: parseGatewayConfig(text('/early'), { file, env: {} }),
      load: fileSource(file, {}).load,
      apply: async ({ routes }) => applied.push(routes[0]!.pattern.text) > 0,
      logger: silentLogger,
      metrics: createMetrics(),
    })
    cleanup.push(() => reloads.close())
    await until(() => expect(applied).toEqual(['/late']))
  })

  test('asked for takes place also when a look at the unchanged file takes its turn', async () => {
    const file = join(await newFolder(), 'gateway.yaml')
    const text = stringify({
      version: 1,
      upstreams: { orders: { url: 'http://127.0.0.1:1' } },
      routes: [publicRoute('a', '/a')],
    })
    await writeFile(file, text)
    const signals: AbortSignal[] = []
    const reloads = createReloads({
      file,
      running: parseGatewayConfig(text, { file, env: {} }),
      load: fileSource(file, {}).load,
      // The first one waits, as for rules that are compiled, until the file is looked at for the first time.
      async apply(_config, signal) {
        signals.push(signal)
        if (signals.length === 1) await once(signal, 'abort')
        return !signal.aborted
      },
      logger: silentLogger,
      metrics: createMetrics(),
    })
    cleanup.push(() => reloads.close())
    await reloads.reload()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  })

  test('includes the key file that it names, changed alone: the new keys count, unusable ones change nothing', async () => {
    const keyFile = join(await newFolder(), 'identity-key.json')
    const newKey = (kid: string) =>
      JSON.stringify({
        ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
        kid,
      })
    const put = async (text: string) => {
      await writeFile(`${keyFile}.new`, text)
      await rename(`${keyFile}.new`, keyFile)
    }
    await put(newKey('first'))
    const gateway = await start({ config: () => ({ identity: { issuer: 'https://gateway.test', keyFile } }) })
    const kids = async () => {
      const answer = await fetch(`${gateway.url}/.well-known/surrogate/jwks.json`)
      return ((await answer.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
    }
    expect(await kids()).toEqual(['first'])
    await put(`{"keys":[${newKey('second')}]}`)
    await until(async () => expect(await kids()).toEqual(['second']))
    await put('{"keys":[]}')
    await until(async () => expect((await configurationCheck(gateway)).detail).toContain('not usable'))
    expect(await kids()).toEqual(['second'])
    await put(newKey('third'))
    await until(async () => expect(await kids()).toEqual(['third']))
  })

  test('that is gone changes nothing', async () => {
    const gateway = await start()
    await rm(gateway.file)
    await until(async () => expect((await configurationCheck(gateway)).detail).toContain('cannot be read'))
    expect(await statusOf(gateway, '/a/1')).toBe(200)
    await gateway.write({ routes: [publicRoute('b', '/b/**')] })
    await until(async () => expect(await statusOf(gateway, '/b/1')).toBe(200))
  })

  test('drops no request under load', async () => {
    const gateway = await start()
    const dispatcher = new Agent({ connections: 8 })
    cleanup.push(() => dispatcher.destroy())
    const statuses = new Map<number, number>()
    let running = true
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const answer = await fetchWith(`${gateway.url}/a/1`, { dispatcher, method: 'POST', body: 'x'.repeat(2_000) })
        expect(JSON.parse(await answer.text()).body).toHaveLength(2_000)
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      }
    })
    for (let reload = 0; reload < 20; reload++) {
      // The upstream's connections are replaced in every second one.
      await gateway.write({
        routes: [publicRoute('a', '/a/**'), publicRoute(`r${reload}`, `/r${reload}`)],
        upstreams: { orders: { url: gateway.upstream.url, idleTimeout: `${60 + (reload % 4)}s` } },
      })
      await gateway.reload()
      expect(await statusOf(gateway, `/r${reload}`)).toBe(200)
    }
    running = false
    await Promise.all(load)
    expect([...statuses.keys()]).toEqual([200])
    expect(await metric(gateway, 'surrogate_gateway_config_reloads_total{outcome="ok"}')).toMatch(/ \d+$/)
  })
})

describe('what has begun ends as it began', () => {
  test('a request that is with the upstream, also when its upstream is no longer configured', async () => {
    const waiting: ServerResponse[] = []
    const gateway = await start({ upstream: (_request, response) => void waiting.push(response) })
    const outgoing = request(`${gateway.url}/a/1`).end()
    await until(() => expect(waiting).toHaveLength(1))
    waiting[0]!.writeHead(200).write('first ')
    const [answer] = await once(outgoing, 'response')
    const other = await startUpstream()
    cleanup.push(() => other.close())
    await gateway.write({ upstreams: { orders: { url: other.url } }, routes: [publicRoute('b', '/b/**')] })
    await gateway.reload()
    expect(await statusOf(gateway, '/b/1')).toBe(200)
    waiting[0]!.end('second')
    let text = ''
    for await (const chunk of answer) text += chunk
    expect(text).toBe('first second')
  })

  test('a WebSocket stays open', async () => {
    const api = await startWebSocketApi()
    cleanup.push(() => api.close())
    const gateway = await start({
      config: () => ({
        upstreams: { orders: { url: api.url } },
        routes: [{ ...publicRoute('live', '/live'), websocket: true }],
      }),
    })
    const { socket, received, ended } = await openWebSocket(`${gateway.url}/live`)
    await gateway.write({ upstreams: { orders: { url: api.url } }, routes: [publicRoute('b', '/b/**')] })
    await gateway.reload()
    socket.send('still here')
    await until(() => expect(received).toEqual(['still here']))
    // A stop ends those of before too.
    const closing = gateway.close()
    expect(await ended).toBe('1001 the gateway is going away')
    await closing
  })
})

test('callers of a rate limit are counted once, however many configurations know them, and not after it is gone', async () => {
  const api = await startWebSocketApi()
  cleanup.push(() => api.close())
  const limited = (more: object = {}) => ({
    upstreams: { orders: { url: api.url } },
    routes: [
      { ...publicRoute('a', '/a/**'), websocket: true, rateLimit: { by: 'address', requests: 9, per: '1h' } },
      { ...publicRoute('b', '/b/**'), ...more },
    ],
  })
  const gateway = await start({ config: () => limited() })
  // Keeps the first configuration.
  const { socket } = await openWebSocket(`${gateway.url}/a/1`)
  const buckets = 'surrogate_gateway_rate_limit_buckets'
  expect(await metric(gateway, buckets)).toMatch(/ 1$/)
  await gateway.write(limited({ rateLimit: { by: 'address', requests: 5, per: '1h' } }))
  await gateway.reload()
  expect([await statusOf(gateway, '/a/1'), await statusOf(gateway, '/b/1')]).toEqual([200, 200])
  expect(await metric(gateway, buckets)).toMatch(/ 2$/)
  await gateway.write({ routes: [publicRoute('b', '/b/**')] })
  await gateway.reload()
  socket.close()
  await until(async () => expect(await metric(gateway, buckets)).toMatch(/ 0$/))
})

describe('a new configuration takes over when it is ready', () => {
  test('an issuer that was there before is not asked again', async () => {
    const gateway = await start()
    await until(() => expect(gateway.issuer.requests).toHaveLength(2))
    await gateway.write({ routes: [publicRoute('b', '/b/**')] })
    await gateway.reload()
    expect(await statusOf(gateway, '/b/1')).toBe(200)
    expect(gateway.issuer.requests).toHaveLength(2)
  })

  test('a new issuer holds it up until its keys are there; the old one serves and says why', async () => {
    const gateway = await start()
    const late = await startTokenIssuer()
    cleanup.push(() => late.close())
    late.answer = { status: 503 }
    const issuers = [{ issuer: gateway.issuer.issuer }, { issuer: late.issuer }]
    await gateway.write({ issuers, routes: [publicRoute('b', '/b/**')] })
    const reloading = gateway.reload()
    await until(async () => expect((await configurationCheck(gateway)).detail).toContain('waits for its issuers'))
    expect([await statusOf(gateway, '/a/1'), await statusOf(gateway, '/b/1')]).toEqual([200, 404])
    late.answer = {}
    await reloading
    expect([await statusOf(gateway, '/a/1'), await statusOf(gateway, '/b/1')]).toEqual([404, 200])
    expect((await gateway.health.ready()).checks).toHaveProperty([`gateway keys ${late.issuer}`])
  })

  test('a later change takes the place of one that still waits', async () => {
    const gateway = await start()
    const silent = { issuer: 'http://127.0.0.1:1/oidc' }
    await gateway.write({ issuers: [{ issuer: gateway.issuer.issuer }, silent], routes: [publicRoute('b', '/b/**')] })
    const first = gateway.reload()
    await until(async () => expect((await configurationCheck(gateway)).detail).toContain('waits for its issuers'))
    await gateway.write({ routes: [publicRoute('c', '/c/**')] })
    await gateway.reload()
    await first
    expect([await statusOf(gateway, '/b/1'), await statusOf(gateway, '/c/1')]).toEqual([404, 200])
    expect((await gateway.health.ready()).checks).not.toHaveProperty([`gateway keys ${silent.issuer}`])
  })

  test('stopping does not wait for it', async () => {
    const gateway = await start()
    await gateway.write({ issuers: [{ issuer: 'http://127.0.0.1:1/oidc' }] })
    void gateway.reload()
    await until(async () => expect((await configurationCheck(gateway)).detail).toContain('waits for its issuers'))
    await gateway.close()
  })
})
