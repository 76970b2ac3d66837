import { connect } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { queryObjects, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const files = createTlsFiles()
let gateway: TestGateway
beforeAll(async () => {
  const listen = { port: 0, tls: { certificates: [files.pair('localhost')] } }
  gateway = await startTestGateway({ config: () => ({ listen }) })
})
afterAll(async () => {
  await gateway.close()
  files.remove()
})

/** Agrees on HTTP/2, sends what is none, and is gone after so long, in ms. */
const visit = (text: string, afterMs: number): Promise<void> =>
  new Promise((resolve) => {
    const raw = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    for (const each of [raw, socket]) each.on('error', () => {}).on('close', () => resolve())
    socket.on('secureConnect', () => socket.write(text, () => setTimeout(() => raw.resetAndDestroy(), afterMs)))
  })

test('connections that speak no HTTP/2 leave nothing behind', async () => {
  const request = 'POST /orders/1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2048\r\n\r\n'.padEnd(2_100, 'x')
  await Promise.all(
    [0, 1, 2, 3].map(async (afterMs) => {
      for (const length of [10, 24, 1_050, request.length]) {
        for (let count = 0; count < 10; count++) await visit(request.slice(0, length), afterMs)
      }
    }),
  )
  await until(async () => {
    const { text } = await gateway.metrics.render()
    expect(/^surrogate_gateway_http2_connections (\d+)$/m.exec(text)?.[1]).toBe('0')
  })
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  await until(() => {
    collectGarbage()
    expect(queryObjects(TLSSocket, { format: 'count' })).toBeLessThan(16)
  })
})
