import { expect, onTestFinished, test } from 'vitest'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { createSharedParts } from '../../../gateway/shared-parts.ts'
import { createAnswers } from '../../../gateway/workers/answers.ts'
import { createChanges } from '../../../gateway/workers/changes.ts'
import { forkWorker, type WorkerProcess } from '../../../gateway/workers/fork-worker.ts'
import { createHandOut } from '../../../gateway/workers/hand-out.ts'
import { createHandOver } from '../../../gateway/workers/hand-over.ts'
import { createLifecycle } from '../../../platform/lifecycle.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { capturedLogger } from '../../support/captured-logger.ts'

/** Two real workers, each with a port of its own, whose configurations have one route each. */

const configurationOf = (route: string) => ({
  file: '/nowhere/gateway.yaml',
  text: `
version: 1
workers: 2
allowInsecure: [public-by-default]
upstreams: { api: { url: 'http://127.0.0.1:9' } }
routes: [{ id: a, path: /${route}, auth: none, upstream: api }]
`,
  environment: {},
})

test('while one worker has not begun to hold, no other one answers by the new configuration', async () => {
  const metrics = createMetrics()
  const answers = createAnswers({ metrics })
  const workers: WorkerProcess[] = []
  const urls: string[] = []
  let configuration = configurationOf('old')
  const { logger } = capturedLogger()
  const lifecycle = createLifecycle({ logger })
  onTestFinished(() => lifecycle.stop())
  const handOver = createHandOver({
    shared: createSharedParts(),
    logger,
    metrics,
    opaBin: undefined,
    change: async () => {},
  })
  const config = parseGatewayConfig(configuration.text, { file: configuration.file, env: {} })
  await handOver.open(config, lifecycle)
  const policies = () => handOver.bundlesOf(config)
  const changes = createChanges({
    inForce: () => ({ configuration, policies }),
    async open(worker) {
      await worker.call('serve', undefined)
      const handOut = createHandOut({ metrics: createMetrics() })
      handOut.join(worker)
      const { url } = await handOut.open({ host: '127.0.0.1', port: 0, setting: 'listen.port', tls: undefined })
      urls.push(url)
      onTestFinished(handOut.close)
    },
  })
  onTestFinished(async () => {
    for (const worker of workers) worker.kill()
    await Promise.all(workers.map(({ closed }) => closed))
    await answers.close()
  })
  const stopped = Promise.withResolvers<void>()
  let stoppedAlready = false
  for (const number of [1, 2]) {
    const forked = forkWorker({
      number,
      stdout: { write: () => true } as never,
      handlersOf: (worker) => ({ ...answers.to(worker, () => {}), decisions: () => {} }),
    })
    workers.push(forked)
    await forked.call('start', {
      worker: number,
      of: 2,
      log: { name: 'test', level: 'silent' },
      ticketKeys: Buffer.alloc(48),
      nonceKey: Buffer.alloc(32),
      portSetting: 'listen.port',
      first: configuration,
    })
    const call: WorkerProcess['call'] = (name, ...rest) => {
      // The second one stands still as soon as it has prepared the change.
      if (number === 2 && urls.length === 2 && name !== 'prepare' && !stoppedAlready) {
        stoppedAlready = true
        process.kill(forked.pid!, 'SIGSTOP')
        stopped.resolve()
      }
      return forked.call(name, ...rest)
    }
    const { ended, closed, hand, kill, tell, pid } = forked
    await changes.join({
      ...{ number, ended, closed, hand, kill, tell, pid, call },
      get alive() {
        return forked.alive
      },
      get connections() {
        return forked.connections
      },
    })
  }

  const status = async (url: string, path: string) => (await fetch(`${url}/${path}`)).status
  // 502: the route is there, its upstream is not. 404: neither.
  expect([await status(urls[0]!, 'new'), await status(urls[1]!, 'new')]).toEqual([404, 404])
  const made = changes.make({ configuration: configurationOf('new'), policies }, () => {
    configuration = configurationOf('new')
  })
  await stopped.promise
  let answered: number | undefined
  const asked = status(urls[0]!, 'new').then((answer) => {
    answered = answer
  })
  // Long enough for an answer, were the first worker not to wait.
  for (let at = 0; at < 200; at++) await workers[0]!.call('health', undefined)
  expect(answered).not.toBe(502)
  process.kill(workers[1]!.pid!, 'SIGCONT')
  await Promise.all([made, asked])
  expect(answered).toBe(502)
  expect(await status(urls[1]!, 'new')).toBe(502)
})
