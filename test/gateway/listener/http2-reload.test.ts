import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'

const files = createTlsFiles()
afterAll(() => files.remove())

test('a raised limits.headerCount counts for the connections that follow a reload', async ({ onTestFinished }) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-http2-reload-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const listen = { port: 0, tls: { certificates: [files.pair('localhost')] } }
  const routes = [{ id: 'a', path: '/a', auth: 'none', upstream: 'orders' }]
  const configOf = (headerCount: number) => ({ listen, routes, limits: { headerCount } })
  const gateway = await startTestGateway({ file: join(folder, 'gateway.yaml'), config: () => configOf(10) })
  onTestFinished(() => gateway.close())
  const fields = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`x-${index}`, 'a']))
  const statusOverNewConnection = async () => {
    const client = await openHttp2(gateway.url, { ca: files.authority.certificate })
    return client
      .send({ ':path': '/a', ...fields })
      .then(({ status }) => status)
      .catch((error: Error) => error.message)
      .finally(() => client.close())
  }
  expect(await statusOverNewConnection()).not.toBe(200)
  await gateway.write(configOf(300))
  await expect.poll(statusOverNewConnection, { timeout: 10_000 }).toBe(200)
})
