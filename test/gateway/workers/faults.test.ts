import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '../../support/free-port.ts'
import { startUpstream } from '../../support/gateway.ts'
import { startGatewayWorkers, workersOf } from '../../support/gateway-workers.ts'
import { startProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

/** What goes wrong with workers, and what then still holds. */

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

const configOf = async (more: object = {}) => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.close())
  return {
    allowInsecure: ['public-by-default'],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'a', path: '/**', auth: 'none', upstream: 'api' }],
    ...more,
  }
}

const start = async (more?: object) => {
  const gateway = await startGatewayWorkers(await configOf(more))
  onTestFinished(() => gateway.close())
  return gateway
}

/** On a connection that stays. */
const openClient = () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return (url: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      get(url, { agent }, (response) => response.resume().on('end', () => resolve(response.statusCode))).on(
        'error',
        reject,
      )
    })
}

test('surrogate gateway ends with an error when its workers end at once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-faults-'))
  const file = join(folder, 'gateway.yaml')
  const admin = { port: await freePort() }
  await writeFile(file, stringify({ version: 1, workers: 2, listen: { port: 0 }, admin, ...(await configOf()) }))
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', file], { cwd: folder })
  let ended = false
  onTestFinished(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await rm(folder, { recursive: true, force: true })
  })
  const exited = child.exited.finally(() => {
    ended = true
  })
  await until(() => {
    for (const pid of ended ? [] : workersOf(child.pid)) process.kill(pid, 'SIGKILL')
    expect(ended).toBe(true)
  })
  expect(await exited).toEqual({ code: 2, signal: null })
  expect(child.output()).toContain("The gateway's workers end as soon as they start (SIGKILL).")
})

test('counters never fall when workers die', async () => {
  const gateway = await start()
  const counted = async () =>
    Number(/^surrogate_gateway_requests_total\{route="a",status="200"\} (\d+)/m.exec(await gateway.metrics())?.[1] ?? 0)
  const ask = () => fetch(`${gateway.url}/x`, { headers: { connection: 'close' } }).then((answer) => answer.text())
  await Promise.all(Array.from({ length: 20 }, ask))
  await until(async () => expect(await counted()).toBe(20))
  const before = gateway.workers()
  for (const pid of before) process.kill(pid, 'SIGKILL')
  await until(async () => {
    expect(await counted()).toBe(20)
    expect(gateway.workers().filter((pid) => !before.includes(pid))).toHaveLength(2)
  })
  await ask()
  await until(async () => expect(await counted()).toBe(21))
})

test('while the primary process stands still, limited routes answer 503 and others as ever', async () => {
  const gateway = await start({
    routes: [
      {
        id: 'limited',
        path: '/limited',
        auth: 'none',
        upstream: 'api',
        rateLimit: [{ by: 'address', requests: 9, per: '1h' }],
      },
      { id: 'free', path: '/free', auth: 'none', upstream: 'api' },
    ],
  })
  const ask = openClient()
  expect(await ask(`${gateway.url}/limited`)).toBe(200)
  gateway.child.signal('SIGSTOP')
  try {
    expect(await ask(`${gateway.url}/free`)).toBe(200)
    expect(await ask(`${gateway.url}/limited`)).toBe(503)
    expect(await ask(`${gateway.url}/free`)).toBe(200)
  } finally {
    gateway.child.signal('SIGCONT')
  }
  await until(async () => expect(await ask(`${gateway.url}/limited`)).toBe(200))
})

test('SIGHUP reads the configuration, and opens log files anew in all workers', async () => {
  const gateway = await start({ accessLog: { to: 'access.log' } })
  const file = join(gateway.folder, 'access.log')
  const [first, second] = [openClient(), openClient()]
  const askBoth = async () => [await first(`${gateway.url}/x`), await second(`${gateway.url}/x`)]
  // It comes with its first line.
  const lines = async (path: string) => {
    const text = await readFile(path, 'utf8').catch(() => '')
    return text.split('\n').length - 1
  }
  expect(await askBoth()).toEqual([200, 200])
  await until(async () => expect(await lines(file)).toBe(2))
  await rename(file, `${file}.1`)
  gateway.child.signal('SIGHUP')
  // Each has opened it when what both are asked is in the new one.
  await until(async () => {
    const [before, earlier] = [await lines(file), await lines(`${file}.1`)]
    await askBoth()
    await until(async () => expect((await lines(file)) + (await lines(`${file}.1`))).toBe(before + earlier + 2))
    expect(await lines(file)).toBe(before + 2)
  })
  await gateway.child.waitFor(/the configuration is unchanged|the configuration was reloaded/)
})

test('a limit that cannot be divided among the workers is refused', async () => {
  const upstreams = { api: { url: 'http://127.0.0.1:9', maxRequests: 1, maxWebSockets: 2 } }
  await expect(start({ upstreams })).rejects.toThrow(
    /gateway\.yaml:\d+:\d+: .*maxRequests is divided among the 2 workers: must be at least 2/,
  )
})
