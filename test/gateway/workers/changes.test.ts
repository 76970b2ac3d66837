import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { until } from '../../support/until.ts'

/** Changes take over in all workers at once, under load, or in none. */

const start = async () => {
  const upstream = await startUpstream((request, response) =>
    response.end(`${request.url?.split('/')[1]} ${request.headers['x-rules']}`),
  )
  onTestFinished(() => upstream.close())
  const gateway = await startGatewayWorkers(configOf(upstream, 'one'))
  onTestFinished(() => gateway.close())
  return { upstream, gateway }
}

const configOf = (upstream: TestUpstream, version: string) => ({
  allowInsecure: ['public-by-default'],
  upstreams: { api: { url: `${upstream.url}/${version}` } },
  routes: [{ id: 'a', path: '/**', auth: 'none', upstream: 'api' }],
})

interface Seen {
  begun: number
  ended: number
  answer: string
}

/** Requests, each on a connection of its own, until `stop`. */
const load = (url: string) => {
  const seen: Seen[] = []
  const failures: unknown[] = []
  let stopped = false
  const client = async () => {
    while (!stopped) {
      const begun = performance.now()
      try {
        const response = await fetch(`${url}/x`, { headers: { connection: 'close' } })
        const answer = await response.text()
        seen.push({ begun, ended: performance.now(), answer: response.ok ? answer : `status ${response.status}` })
      } catch (error) {
        failures.push(error)
      }
    }
  }
  const clients = Array.from({ length: 6 }, client)
  return {
    seen,
    failures,
    async stop() {
      stopped = true
      await Promise.all(clients)
    },
  }
}

/** Requests that began after an answer of the new had come, and got the old. */
const stale = (seen: readonly Seen[], isNew: (answer: string) => boolean): Seen[] => {
  const firstNew = Math.min(...seen.filter(({ answer }) => isNew(answer)).map(({ ended }) => ended))
  return seen.filter(({ begun, answer }) => begun > firstNew && !isNew(answer))
}

test('a configuration takes over in all workers at once, and no request fails', async () => {
  const { upstream, gateway } = await start()
  const traffic = load(gateway.url)
  for (const version of ['two', 'three', 'four']) {
    await gateway.write(configOf(upstream, version))
    await until(() => expect(traffic.seen.at(-1)?.answer).toBe(`${version} one`))
    const already = traffic.seen.length
    await until(() => expect(traffic.seen.length).toBeGreaterThan(already + 20))
    expect(stale(traffic.seen, (answer) => answer.startsWith(version))).toEqual([])
  }
  await traffic.stop()
  expect(traffic.failures).toEqual([])
  expect(gateway.child.output()).toMatch(/the configuration was reloaded/)
})

test('edited rules are compiled once, and take over in all workers at once', async () => {
  const { gateway } = await start()
  const traffic = load(gateway.url)
  await gateway.writeRules('two')
  await until(() => expect(traffic.seen.at(-1)?.answer).toBe('one two'))
  const already = traffic.seen.length
  await until(() => expect(traffic.seen.length).toBeGreaterThan(already + 20))
  await traffic.stop()
  expect(stale(traffic.seen, (answer) => answer === 'one two')).toEqual([])
  expect(traffic.failures).toEqual([])
  expect(await gateway.compiled()).toBe(2)
})

test('what cannot be used changes nothing in any worker, and is told', async () => {
  const { gateway } = await start()
  const answers = async () =>
    new Set(
      await Promise.all(
        Array.from({ length: 8 }, async () =>
          (await fetch(`${gateway.url}/x`, { headers: { connection: 'close' } })).text(),
        ),
      ),
    )
  // Rules that compile, and lack the entrypoint that the route asks: the workers refuse them.
  await gateway.writeFile('rules/rules.rego', 'package other\n\n# METADATA\n# entrypoint: true\ndecision := true\n')
  await gateway.child.waitFor(/policies not reloaded[^\n]*|lack these entrypoints[^\n]*policies not reloaded/)
  expect(await answers()).toEqual(new Set(['one one']))

  await appendFile(join(gateway.folder, 'gateway.yaml'), 'nonsense: true\n')
  await gateway.child.waitFor(/unknown key nonsense[^\n]*the configuration was not reloaded/)
  expect(await answers()).toEqual(new Set(['one one']))
  expect((await gateway.readiness()).checks).toMatchObject({
    'gateway configuration': { detail: expect.stringContaining('unknown key nonsense') },
    'gateway policies': { detail: expect.stringContaining('lack these entrypoints') },
  })

  await gateway.writeRules('three')
  await until(async () => expect(await answers()).toEqual(new Set(['one three'])))
})
