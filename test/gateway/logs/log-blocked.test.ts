import { spawnSync } from 'node:child_process'
import { constants } from 'node:fs'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { capturedLogger } from '../../support/captured-logger.ts'
import { startTestGateway } from '../../support/gateway.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

test('a log that nobody reads holds up neither requests nor the end of the gateway, and what is lost is counted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'blocked-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  // Like a stdout behind a collector that hangs: a pipe takes 64 kB, and then nothing until somebody reads.
  const pipe = join(folder, 'decisions')
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
  const reader = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  cleanup.push(() => reader.close())
  const { logger, lines } = capturedLogger()
  const gateway = await startTestGateway({
    logger,
    config: () => ({ decisionLog: { to: pipe, bufferSize: 65_536 } }),
  })
  const agent = 'x'.repeat(4_000)
  for (let count = 0; count < 60; count++) {
    const answer = await fetch(`${gateway.url}/public/1?agent=${agent}`)
    expect(answer.status).toBe(200)
    await answer.bytes()
  }
  const { text } = await gateway.metrics.render()
  expect(Number(/surrogate_gateway_log_dropped_total\{log="decision"\} (\d+)/.exec(text)![1])).toBeGreaterThan(0)
  await gateway.close()
  expect(lines.filter(({ msg }) => String(msg).includes('did not stop in time'))).toEqual([])
})
