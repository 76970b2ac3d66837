import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async (drain: Record<string, string>, listener: (response: ServerResponse) => void) => {
  const gateway = await startTestGateway({
    upstream: (_request, response) => listener(response),
    config: () => ({ drain, routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'orders' }] }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

const ask = (url: string, path: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(url + path, { agent: false }, resolve)
      .on('error', reject)
      .end()
  })

const textOf = async (answer: AsyncIterable<Buffer>) => {
  let text = ''
  for await (const chunk of answer) text += chunk
  return text
}

describe('a gateway that stops', () => {
  test('sends what is under way to its end, says so to connections, and takes no new ones', async () => {
    const waiting: ServerResponse[] = []
    const gateway = await start({}, (response) => void waiting.push(response))
    const first = ask(gateway.url, '/1')
    await until(() => expect(waiting).toHaveLength(1))
    const closing = gateway.close()
    await expect(ask(gateway.url, '/2')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    waiting[0]!.end('whole')
    const answer = await first
    expect(answer.headers.connection).toBe('close')
    expect(await textOf(answer)).toBe('whole')
    await closing
  })

  test('closes idle connections at once', async () => {
    const gateway = await start({}, (response) => void response.end('ok'))
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await once(socket, 'data')
    const closed = once(socket, 'close')
    await gateway.close()
    await closed
  })

  test('breaks off what is still under way after drain.timeout, and frees the upstream', async () => {
    const upstream: ServerResponse[] = []
    const gateway = await start({ timeout: '200ms' }, (response) => {
      upstream.push(response)
      response.write('never ')
    })
    const answer = await ask(gateway.url, '/1')
    const reading = textOf(answer)
    reading.catch(() => {})
    await gateway.close()
    await expect(reading).rejects.toMatchObject({ code: 'ECONNRESET' })
    await until(() => expect(upstream[0]!.destroyed).toBe(true))
  })

  test('still takes requests during drain.delay, on connections that it asks to leave', async () => {
    const waiting: ServerResponse[] = []
    const gateway = await start({ delay: '1s' }, (response) => void waiting.push(response))
    let closed = false
    const closing = gateway.close().then(() => {
      closed = true
    })
    const late = ask(gateway.url, '/1')
    await until(() => expect(waiting).toHaveLength(1))
    waiting[0]!.end('served')
    const answer = await late
    expect([answer.headers.connection, await textOf(answer), closed]).toEqual(['close', 'served', false])
    await closing
    await expect(ask(gateway.url, '/2')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
