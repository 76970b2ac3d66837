import type { LookupAddress } from 'node:dns'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Connection } from '../../../platform/http/bounded-client.ts'
import { createOutboundAgent, createTargetPolicy, type OutboundAgent } from '../../../platform/http/outbound.ts'

let server: Server
let port: number
let hits: number
let agents: OutboundAgent[]
beforeEach(async () => {
  hits = 0
  agents = []
  server = createServer((_request, response) => {
    hits += 1
    response.end('reached')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  for (const agent of agents) await agent.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 })
const agentWith = (allowedNetworks: string[], resolve?: (name: string) => Promise<LookupAddress[]>) => {
  const policy = createTargetPolicy({ allowedNetworks, allowHttp: true, resolve })
  const agent = createOutboundAgent({ policy, maxBodyBytes: 65_536 })
  agents.push(agent)
  return agent
}
const get = async (agent: OutboundAgent, host: string) => {
  const dispatcher = agent.dispatcherOf('hook')
  const { statusCode, body } = await dispatcher.request({ origin: `http://${host}:${port}`, path: '/', method: 'GET' })
  await body.dump()
  return statusCode
}
/** What carries a request. */
const connectionTo = async (agent: OutboundAgent, host: string) => {
  const seen: Connection[] = []
  const onConnection = (connection: Connection) => void seen.push(connection)
  const options = { origin: `http://${host}:${port}`, path: '/', method: 'GET' as const, onConnection }
  const { body } = await agent.dispatcherOf('hook').request(options)
  await body.dump()
  return seen
}

test('an address in the URL is checked at connect, though it is never looked up', async () => {
  const agent = agentWith([])
  for (const host of ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]'])
    await expect(get(agent, host)).rejects.toMatchObject({ code: 'TARGET_NOT_ALLOWED' })
  expect(hits).toBe(0)
})

test('plain http that is for named networks alone reaches no other address, whatever a name says', async () => {
  const names: Record<string, LookupAddress[]> = {
    'inside.test': [address('127.0.0.1')],
    'public.test': [address('93.184.216.34')],
  }
  const policy = createTargetPolicy({
    allowedNetworks: ['127.0.0.0/8'],
    allowHttp: 'allowed_networks',
    resolve: async (name) => names[name] ?? [],
  })
  const agent = createOutboundAgent({ policy, maxBodyBytes: 65_536 })
  agents.push(agent)
  expect(await get(agent, 'inside.test')).toBe(200)
  expect(await get(agent, '127.0.0.1')).toBe(200)
  for (const host of ['public.test', '93.184.216.34', '[2606:2800:220:1::1]'])
    await expect(get(agent, host)).rejects.toMatchObject({ code: 'TARGET_NOT_ALLOWED' })
  for (const host of ['public.test', '93.184.216.34']) {
    expect(await policy.refusal(`http://${host}/`)).toContain('plain http')
    expect(await policy.refusal(`https://${host}/`)).toBeUndefined()
  }
  // Without any network there is none for it.
  const none = createTargetPolicy({ allowHttp: 'allowed_networks', resolve: async () => names['public.test']! })
  expect(await none.refusal('http://public.test/')).toContain('plain http')
})

test('every address of a name is checked: only allowed ones are tried', async () => {
  const loopbackOnly = agentWith(['127.0.0.0/8'], async () => [address('10.255.255.1'), address('127.0.0.1')])
  expect(await connectionTo(loopbackOnly, 'mixed.test')).toEqual([{ address: '127.0.0.1', reused: false }])
  const none = agentWith([], async () => [address('127.0.0.1'), address('::1')])
  await expect(get(none, 'inside.test')).rejects.toMatchObject({ code: 'TARGET_NOT_ALLOWED' })
  expect(hits).toBe(1)
})

test('a name that moves to a private address after it was accepted is refused at the next connection', async () => {
  let answer = [address('127.0.0.1')]
  const resolve = async () => answer
  const policy = createTargetPolicy({ allowedNetworks: ['127.0.0.1'], allowHttp: true, resolve })
  expect(await policy.refusal(`http://rebinding.test:${port}/`)).toBeUndefined()
  const first = agentWith(['127.0.0.1'], resolve)
  expect(await get(first, 'rebinding.test')).toBe(200)
  answer = [address('127.0.0.2')]
  const next = agentWith(['127.0.0.1'], resolve)
  await expect(get(next, 'rebinding.test')).rejects.toMatchObject({ code: 'TARGET_NOT_ALLOWED' })
  expect(hits).toBe(1)
})

test('a kept connection does not outlive the check of its name for long', async () => {
  let answer = [address('127.0.0.1')]
  const policy = createTargetPolicy({ allowedNetworks: ['127.0.0.1'], allowHttp: true, resolve: async () => answer })
  const agent = createOutboundAgent({ policy, connections: 1, maxBodyBytes: 65_536 })
  agents.push(agent)
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  expect(await get(agent, 'moving.test')).toBe(200)
  answer = [address('127.0.0.2')]
  expect(await get(agent, 'moving.test')).toBe(200)
  vi.setSystemTime(Date.now() + 301_000)
  await expect(get(agent, 'moving.test')).rejects.toMatchObject({ code: 'TARGET_NOT_ALLOWED' })
  expect(hits).toBe(2)
})

test('a redirect is an answer, not an order, and a path cannot name another host', async () => {
  const agent = agentWith(['127.0.0.1'], async () => [address('127.0.0.1')])
  const seen: string[] = []
  server.removeAllListeners('request').on('request', (request, response) => {
    seen.push(request.headers.host!)
    response.writeHead(307, { location: `http://127.0.0.2:${port}/` }).end()
  })
  for (const path of ['/', '//127.0.0.2/', '/@127.0.0.2', 'http://127.0.0.2/']) {
    const { statusCode, body } = await agent.dispatcherOf('hook').request({
      origin: `http://one.test:${port}`,
      path,
      method: 'GET',
    })
    await body.dump()
    expect(statusCode).toBe(307)
  }
  expect(new Set(seen)).toEqual(new Set([`one.test:${port}`]))
})

test('a name without addresses fails like one that does not exist', async () => {
  const agent = agentWith([], async () => [])
  await expect(get(agent, 'nothing.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
})
