import { once } from 'node:events'
import { Agent, get, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startUpstream } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { isRunning } from '../../support/process.ts'
import { until } from '../../support/until.ts'

/** How workers, the primary process and the whole come to an end. */

const start = async (more: object = {}) => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream((incoming, response) => {
    if (incoming.url === '/held') held.push(response)
    else response.end('ok')
  })
  onTestFinished(() => upstream.close())
  const config = {
    allowInsecure: ['public-by-default'],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'a', path: '/**', auth: 'none', upstream: 'api' }],
    ...more,
  }
  const gateway = await startGatewayWorkers(config)
  onTestFinished(() => gateway.close())
  return { gateway, held, config }
}

/** A client that keeps its connection. */
const startClient = (url: string) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const outcomes: string[] = []
  let stopped = false
  const one = () =>
    new Promise<string>((resolve) => {
      get(`${url}/x`, { agent, timeout: 10_000 }, (response) => {
        response.resume().on('end', () => resolve(String(response.statusCode)))
        response.on('error', () => resolve('failed'))
      })
        .on('timeout', () => resolve('timeout'))
        .on('error', () => resolve('failed'))
    })
  const run = async () => {
    while (!stopped) outcomes.push(await one())
    agent.destroy()
  }
  const ended = run()
  return {
    outcomes,
    stop: async () => {
      stopped = true
      await ended
    },
  }
}

const checksOf = (gateway: GatewayWorkers) => gateway.readiness().then(({ checks }) => checks)

test('a worker that is killed costs its own connections, and another takes its place with what is in force', async () => {
  const { gateway, config } = await start()
  await gateway.write({ ...config, routes: [{ ...config.routes[0], id: 'changed' }] })
  await gateway.child.waitFor(/the configuration was reloaded/)
  const clients = Array.from({ length: 8 }, () => startClient(gateway.url))
  await until(() => expect(clients.every(({ outcomes }) => outcomes.length > 20)).toBe(true))

  const [first = 0] = gateway.workers()
  process.kill(first, 'SIGKILL')
  await until(() => expect(gateway.workers().filter((pid) => pid !== first)).toHaveLength(2))
  await until(async () => expect(await checksOf(gateway)).toMatchObject({ 'gateway workers': { ok: true } }))
  const before = clients.map(({ outcomes }) => outcomes.length)
  await until(() => expect(clients.every(({ outcomes }, index) => outcomes.length > before[index]! + 20)).toBe(true))
  await Promise.all(clients.map(({ stop }) => stop()))

  // A request each on the connections of that worker, and none of the others.
  const failures = clients.map(({ outcomes }) => outcomes.filter((outcome) => outcome !== '200'))
  expect(failures.every((each) => each.length <= 1)).toBe(true)
  expect(failures.flat()).not.toContain('timeout')
  expect(failures.filter((each) => each.length === 0).length).toBeGreaterThanOrEqual(4)
  expect(gateway.child.output()).toMatch(/"how":"SIGKILL"[^\n]*a worker ended; another one takes its place/)
  // The line is of the primary process: the worker's number and id are beside its own.
  const told =
    gateway.child
      .output()
      .split('\n')
      .find((line) => line.includes('"a worker ended;')) ?? ''
  expect(told.match(/"pid":/g)).toHaveLength(1)
  expect(JSON.parse(told)).toMatchObject({ pid: gateway.child.pid, workerPid: first })

  // Each worker has what came before it was started, not what the gateway was started with.
  const count = Number(/requests_total\{route="changed",status="200"\} (\d+)/.exec(await gateway.metrics())?.[1])
  const connection = { headers: { connection: 'close' } }
  for (let at = 0; at < 8; at++) await (await fetch(`${gateway.url}/x`, connection)).text()
  await until(async () =>
    expect(await gateway.metrics()).toMatch(
      new RegExp(`requests_total\\{route="changed",status="200"\\} ${count + 8}\\b`),
    ),
  )
})

test('when the primary process is killed, nobody serves any more', async () => {
  const { gateway } = await start()
  const workers = gateway.workers()
  expect(workers).toHaveLength(2)
  gateway.child.signal('SIGKILL')
  await until(() => expect(workers.filter(isRunning)).toEqual([]))
  await expect(fetch(`${gateway.url}/x`)).rejects.toThrow()
})

test.for(['process', 'group'] as const)('SIGTERM to the %s lets running requests end, and all end', async (whom) => {
  const { gateway, held } = await start()
  const workers = gateway.workers()
  const running = Array.from({ length: 4 }, () => request(`${gateway.url}/held`, { agent: false }).end())
  const answers = running.map((outgoing) => once(outgoing, 'response') as Promise<[IncomingMessage]>)
  await until(() => expect(held).toHaveLength(4))
  if (whom === 'group') gateway.child.signalGroup('SIGTERM')
  else gateway.child.signal('SIGTERM')
  await gateway.child.waitFor(/stopping/)
  // Nobody takes a new connection; one that came in this moment may get no answer.
  const signal = () => AbortSignal.timeout(1_000)
  await until(() => expect(fetch(`${gateway.url}/x`, { signal: signal() })).rejects.toThrow())
  for (const response of held) response.end('whole')
  for (const [answer] of await Promise.all(answers)) {
    let text = ''
    for await (const chunk of answer) text += chunk
    expect(text).toBe('whole')
  }
  expect(await gateway.child.exited).toEqual({ code: 0, signal: null })
  expect(workers.filter(isRunning)).toEqual([])
})

test('a port that is taken is told as with one process', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as AddressInfo
  await expect(start({ listen: { port } })).rejects.toThrow(
    `Port ${port} is in use: the gateway cannot listen on 127.0.0.1:${port}.`,
  )
})
