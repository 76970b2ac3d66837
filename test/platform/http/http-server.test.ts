import { once } from 'node:events'
import { connect } from 'node:net'
import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { createHealth } from '../../../platform/health.ts'
import { startAdminServer } from '../../../platform/http/admin-server.ts'
import { listen } from '../../../platform/http/http-server.ts'
import { createMetrics } from '../../../platform/metrics.ts'

const address = { name: 'the test server', host: '127.0.0.1', setting: 'PORT' }

test('a port in use gives one clear line that names the setting', async () => {
  const first = await listen({ ...address, port: 0, handler: (_, response) => void response.end() })
  onTestFinished(() => first.close())

  await expect(listen({ ...address, port: first.port, handler: () => {} })).rejects.toMatchObject({
    name: 'StartupError',
    message: `Port ${first.port} is in use: the test server cannot listen on 127.0.0.1:${first.port}.`,
    hint: 'Stop what uses it, or set PORT to another value.',
  })
})

test('closing lets a running request finish and refuses new ones', async () => {
  let finish = () => {}
  const server = await listen({
    ...address,
    port: 0,
    handler: (_, response) => {
      finish = () => response.end('done')
      server.server.emit('arrived')
    },
  })
  const arrived = once(server.server, 'arrived')
  const answer = request(server.url)
  await arrived
  const closed = server.close()
  const [refusal] = await once(connect(server.port, server.host), 'error')
  expect(refusal).toMatchObject({ code: 'ECONNREFUSED' })
  finish()
  expect(await (await answer).body.text()).toBe('done')
  await closed
})

test('closing ends connections that outlast the grace', async () => {
  const server = await listen({ ...address, port: 0, handler: () => server.server.emit('arrived') })
  const arrived = once(server.server, 'arrived')
  const answer = request(server.url).catch((error: Error) => error)
  await arrived
  await server.close(10)
  expect(await answer).toBeInstanceOf(Error)
})

test('the admin listener tells life, readiness with reasons, and metrics', async () => {
  const health = createHealth()
  const metrics = createMetrics()
  const admin = await startAdminServer({ host: '127.0.0.1', port: 0, health, metrics })
  onTestFinished(() => admin.close())
  const get = async (path: string) => {
    const { statusCode, body } = await request(`${admin.url}${path}`)
    return { status: statusCode, text: await body.text() }
  }
  let keys = false
  health.addCheck('keys', () => ({ ok: keys, detail: keys ? undefined : 'not loaded yet' }))
  health.addCheck('database', () => ({ ok: true }))
  metrics.counter('surrogate_things_total', 'Things.', ['kind']).inc({ kind: 'good' })

  expect(await get('/livez')).toEqual({ status: 200, text: 'ok\n' })
  const unready = await get('/readyz')
  expect([unready.status, JSON.parse(unready.text)]).toEqual([
    503,
    { ok: false, checks: { keys: { ok: false, detail: 'not loaded yet' }, database: { ok: true } } },
  ])
  keys = true
  expect((await get('/readyz')).status).toBe(200)
  expect((await get('/metrics')).text).toContain('surrogate_things_total{kind="good"} 1')
  expect((await get('/other')).status).toBe(404)
  health.drain()
  expect((await get('/readyz')).status).toBe(503)
})

/** What is answered to these lines of a request, up to the end of the connection. */
const rawAnswer = async (port: number, ...lines: string[]) => {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (more: string) => {
    text += more
  })
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`)
  await once(socket, 'close')
  return text
}

test('a request that names two hosts is refused: another server on its way may have taken the other one', async () => {
  const asked: (string | undefined)[] = []
  const server = await listen({
    ...address,
    port: 0,
    handler: (request, response) => {
      asked.push(request.headers.host)
      response.end('done')
    },
  })
  onTestFinished(() => server.close())
  expect(await rawAnswer(server.port, 'GET / HTTP/1.1', 'Host: a.test')).toMatch(/^HTTP\/1\.1 200 .*done/s)
  for (const hosts of [
    ['Host: a.test', 'Host: b.test'],
    ['Host: a.test', 'X: y', 'hOST: a.test'],
  ])
    expect(await rawAnswer(server.port, 'GET / HTTP/1.1', ...hosts)).toMatch(
      /^HTTP\/1\.1 400 .*The request has more than one Host field\./s,
    )
  // Node's own answer.
  expect(await rawAnswer(server.port, 'GET / HTTP/1.1', 'X: y')).toMatch(/^HTTP\/1\.1 400 /)
  expect(asked).toEqual(['a.test'])
})
