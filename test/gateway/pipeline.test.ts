import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createPipeline } from '../../gateway/pipeline.ts'
import {
  afterDeciding,
  afterReading,
  afterRouting,
  newRequestContext,
  type Stage,
} from '../../gateway/request/request-context.ts'
import { silentLogger } from '../../platform/logger.ts'

const start = async (stages: readonly Stage[]) => {
  const pass = createPipeline(stages, { logger: silentLogger, onFinish: () => {} })
  const server = createServer((incoming, response) => pass(newRequestContext(incoming, response)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  ['reading', afterReading],
  ['routing', afterRouting],
  ['deciding', afterDeciding],
])('a stage that stands before %s lets no request through', async (_what, after) => {
  const reached: string[] = []
  const url = await start(after(({ response }) => void response.end(reached.push('the stage'))))
  const response = await fetch(url)
  expect([response.status, await response.json()]).toEqual([
    500,
    {
      type: 'urn:surrogate:problem:server.error',
      title: 'Something went wrong on our side.',
      status: 500,
      code: 'server.error',
      instance: '',
    },
  ])
  expect(reached).toEqual([])
})
