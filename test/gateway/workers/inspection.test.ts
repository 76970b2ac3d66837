import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { GatewayInspection } from '../../../gateway/inspect.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { runProcess } from '../../support/process.ts'
import { startTarget } from '../../support/targets.ts'
import { until } from '../../support/until.ts'

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

/** What workers know of targets, told as one. */

test('/inspect and /readyz add up what workers count, and tell the worst of what they see, and how many see it', async () => {
  const [failing, ill, well] = [await startTarget(), await startTarget(), await startTarget()]
  failing.status = 503
  ill.checkStatus = 500
  onTestFinished(async () => void (await Promise.all([failing, ill, well].map((target) => target.close()))))
  const routes = [{ id: 'a', path: '/**', auth: 'none', upstream: 'ejects' }]
  const ejects = {
    targets: [{ url: failing.url }, { url: well.url }],
    balance: 'round-robin',
    ejection: { consecutiveFailures: 2, for: '10m' },
    slowStart: '0s',
  }
  const checks = {
    targets: [{ url: ill.url }, { url: well.url }],
    health: { path: '/healthz', interval: '100ms', timeout: '100ms' },
  }
  const config = { allowInsecure: ['public-by-default'], upstreams: { ejects, checks }, routes }
  const gateway = await startGatewayWorkers(config)
  onTestFinished(() => gateway.close())

  const inspect = async () => {
    const { gateway: told } = (await (await fetch(`${gateway.adminUrl}/inspect`)).json()) as {
      gateway: GatewayInspection
    }
    return (upstream: string, target: { url: string }) =>
      told.upstreams.find(({ name }) => name === upstream)?.targets.find(({ name }) => name === target.url)
  }
  /** On one connection, and so all to one worker. */
  const ask = async (times: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let at = 0; at < times; at++) {
      await new Promise<void>((resolve, reject) => {
        get(`${gateway.url}/x`, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject)
      })
    }
    return () => agent.destroy()
  }

  const first = await ask(8)
  const ejected = { state: 'out', ejections: 1, failed: 2, toldBy: { workers: 1, of: 2 } }
  expect((await inspect())('ejects', failing)).toMatchObject(ejected)
  expect((await gateway.readiness()).checks).toMatchObject({
    'targets ejects': { ok: true, detail: `1 of 2 well; ${failing.url} is ejected in 1 of 2 workers` },
  })
  const shown = await runProcess(process.execPath, [surrogate, 'gateway', 'inspect'], { cwd: join(gateway.folder) })
  expect(shown.output).toMatch(
    /ejects \(round-robin\): 1 of 2 well, 0 running\n.*\n.* out in 1 of 2 workers, ejected for /,
  )

  // The first connection is still there: this one is the other worker's.
  const second = await ask(8)
  await until(async () => {
    const both = (await inspect())('ejects', failing)
    expect(both).toMatchObject({ state: 'out', ejections: 1, failed: 4 })
    expect(both).not.toHaveProperty('toldBy')
    expect((await inspect())('ejects', well)).toMatchObject({ state: 'in', answered: 12 })
  })
  await until(async () => {
    const { checks: lines } = await gateway.readiness()
    expect(lines['targets checks']?.detail).toBe(`1 of 2 well; ${ill.url} fails its checks (status 500)`)
  })
  first()
  second()

  // Lines come and go with the configuration.
  await gateway.write({ ...config, upstreams: { ejects } })
  await until(async () => {
    const { checks: lines } = await gateway.readiness()
    expect(Object.keys(lines)).toContain('targets ejects')
    expect(Object.keys(lines)).not.toContain('targets checks')
  })
})
