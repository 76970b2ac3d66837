import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openGateway } from '../../bin/parts/gateway.ts'
import { openImpersonationPolicies } from '../../bin/parts/impersonation-policies.ts'
import { fileSource } from '../../gateway/config/load.ts'
import { createHealth } from '../../platform/health.ts'
import { createLifecycle } from '../../platform/lifecycle.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { impersonationEntrypoint } from '../../policies/impersonation.ts'
import { capturedLogger } from '../support/captured-logger.ts'
import { until } from '../support/until.ts'

test('a SIGHUP while the gateway starts ends nothing: it is answered once the gateway runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-hangup-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'gateway.yaml')
  const route = '{ id: one, path: /one, auth: none, upstream: api }'
  await writeFile(
    file,
    `version: 1\nlisten: { port: 0 }\nupstreams: { api: { url: "http://127.0.0.1:9" } }\nroutes: [${route}]\n`,
  )
  const source = fileSource(file, {})
  const config = await source.load()
  const { logger, lines } = capturedLogger()
  const lifecycle = createLifecycle({ logger })
  const service = { logger, lifecycle, health: createHealth(), metrics: createMetrics(), fail() {} }
  const before = process.listenerCount('SIGHUP')

  const opening = openGateway(service, { config, source, opaBin: undefined })
  // What Node does with the signal. Without a listener it would end the process instead.
  expect(process.emit('SIGHUP')).toBe(true)
  await opening
  const messages = () => lines.map(({ msg }) => msg)
  await until(() => expect(messages()).toContain('the configuration was reloaded'))
  expect(messages().indexOf('the gateway listens')).toBeLessThan(messages().indexOf('the configuration was reloaded'))

  await lifecycle.stop()
  expect(process.listenerCount('SIGHUP')).toBe(before)
})

test('a SIGHUP while the rules of impersonation are loaded ends nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-hangup-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(
    join(folder, 'rules.rego'),
    'package surrogate.impersonation\n\n# METADATA\n# entrypoint: true\ndecision := {"allow": false}\n',
  )
  const { logger } = capturedLogger()
  const lifecycle = createLifecycle({ logger })
  const service = { logger, lifecycle, health: createHealth(), metrics: createMetrics(), fail() {} }
  const before = process.listenerCount('SIGHUP')

  const opening = openImpersonationPolicies(service, folder, undefined)
  expect(process.emit('SIGHUP')).toBe(true)
  const policies = await opening
  expect(await policies.current().evaluate(impersonationEntrypoint, {})).toEqual({ allow: false })

  await lifecycle.stop()
  expect(process.listenerCount('SIGHUP')).toBe(before)
})
