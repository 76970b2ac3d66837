import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createNameResolver } from '../../../../gateway/upstream/targets/names/resolve.ts'
import { createAuthority } from '../../../support/certificates.ts'
import { startDnsServer, type Zone } from '../../../support/dns-server.ts'
import { openTargets, startTarget } from '../../../support/targets.ts'
import { until } from '../../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const closing = <Closable extends { close(): Promise<unknown> }>(part: Closable): Closable => {
  cleanup.push(() => part.close())
  return part
}

const name = 'orders.internal.test'

/** Targets behind a name of this zone, which all listen on one port. */
const behindName = async (zone: Zone, settings: object = {}, { refresh } = { refresh: '1s' }) => {
  const dns = closing(await startDnsServer(zone))
  const first = closing(await startTarget('127.0.0.1'))
  const others = await Promise.all(['127.0.0.2', '127.0.0.3'].map((host) => startTarget(host, first.port)))
  for (const other of others) closing(other)
  const url = `http://${name}:${first.port}`
  const api = closing(
    openTargets({ url, balance: 'round-robin', dns: { refresh, servers: [dns.address] }, ...settings }),
  )
  await api.targets.ready
  return {
    ...api,
    dns,
    url,
    servers: [first, ...others],
    addresses: () => api.names().map((text) => text.split(' ')[1]),
  }
}

describe('a name', () => {
  test('with several addresses is several targets, which come and go', async () => {
    const zone: Zone = { [name]: ['127.0.0.2', '127.0.0.1'] }
    const api = await behindName(zone)
    expect(api.names()).toEqual([`${api.url} 127.0.0.1`, `${api.url} 127.0.0.2`])
    const target = api.targets.pick()!
    expect([target.origin, target.address]).toEqual([api.url, '127.0.0.1'])
    await api.sendMany(4)
    expect(api.servers.map(({ requests }) => requests)).toEqual([2, 2, 0])

    zone[name] = ['127.0.0.1', '127.0.0.3']
    await until(() => expect(api.addresses()).toEqual(['127.0.0.1', '127.0.0.3']))
    await api.sendMany(4)
    expect(api.servers.map(({ requests }) => requests)).toEqual([expect.any(Number), 2, expect.any(Number)])
    // Its series go too, when it has stayed away for a while.
    await until(async () =>
      expect((await api.series('surrogate_gateway_target_running')).join()).not.toContain('127.0.0.2'),
    )
    expect((await api.metrics.render()).text).not.toContain('127.0.0.2')
  })

  test('that ceases to exist keeps the last addresses and says so', async () => {
    const zone: Zone = { [name]: ['127.0.0.1', '127.0.0.2'] }
    const api = await behindName(zone)
    delete zone[name]
    await until(() => expect(api.targets.names()[0]!.problem).toBe('ENOTFOUND'))
    expect(api.addresses()).toEqual(['127.0.0.1', '127.0.0.2'])
    expect(await api.send()).toMatchObject({ outcome: 200 })
    expect((await api.series('surrogate_gateway_unresolved_names_total'))[0]).toMatch(/ [1-9]\d*$/)
    expect(api.lines).toContainEqual(
      expect.objectContaining({
        upstream: 'api',
        host: name,
        code: 'ENOTFOUND',
        msg: 'the name cannot be resolved: the last addresses stay in use',
      }),
    )
    zone[name] = '127.0.0.3'
    await until(() => expect(api.addresses()).toEqual(['127.0.0.3']))
    expect(api.targets.names()[0]!.problem).toBeUndefined()
  })

  test('that changes to and fro finds its targets again, with what is known of them', async () => {
    const all = ['127.0.0.1', '127.0.0.2', '127.0.0.3']
    const zone: Zone = { [name]: all }
    const api = await behindName(zone, { ejection: { consecutiveFailures: 1, for: '60s' } }, { refresh: '1m' })
    const broken = `${api.url} 127.0.0.2`
    api.servers[1]!.status = 503
    await api.sendMany(3)
    zone[name] = ['127.0.0.1', '127.0.0.3']
    await until(() => expect(api.addresses()).toEqual(zone[name]))
    zone[name] = all
    await until(() => expect(api.addresses()).toEqual(all))
    expect(api.stateOf(broken)).toMatchObject({ state: 'out', ejections: 1, failed: 1 })
  })

  test('that was never found is looked up on connecting', async () => {
    const api = await behindName({})
    expect(api.names()).toEqual([api.url])
    expect(api.targets.names()).toMatchObject([{ host: name, addresses: [], problem: 'ENOTFOUND' }])
    expect(api.targets.pick()!.address).toBeUndefined()
  })

  test.each([
    ['its answer has expired', { ttl: 1 }, { refresh: '1h' }],
    ['refresh has passed', { ttl: 3_600 }, { refresh: '1s' }],
  ])('is asked for again when %s', async (_, answer, refresh) => {
    const api = await behindName({ [name]: { addresses: ['127.0.0.1'], ...answer } }, {}, refresh)
    const before = api.dns.asked.length
    await until(() => expect(api.dns.asked.length).toBeGreaterThan(before))
  })
})

test('a request that is with a target that goes is finished', async () => {
  const zone: Zone = { [name]: ['127.0.0.1', '127.0.0.2'] }
  const api = await behindName(zone)
  const answers: (() => void)[] = []
  api.servers[1]!.answer = (_, response) => void answers.push(() => response.end())
  const sent = Promise.all([api.send(), api.send()])
  await until(() => expect(answers).toHaveLength(1))
  zone[name] = '127.0.0.1'
  await until(() => expect(api.addresses()).toEqual(['127.0.0.1']))
  // Longer than a target that left is remembered.
  const questions = api.dns.asked.length
  await until(() => expect(api.dns.asked.length).toBeGreaterThan(questions + 4))
  answers[0]!()
  expect((await sent).map((one) => one?.outcome)).toEqual([200, 200])
  await until(async () => expect((await api.metrics.render()).text).not.toContain('127.0.0.2'))
})

describe('the resolver', () => {
  const resolverFor = async (zone: Zone, options: { family?: 'any' | 'ipv4' | 'ipv6'; hasIpv6?: boolean } = {}) => {
    const server = closing(await startDnsServer(zone))
    const { family = 'any', hasIpv6 = true } = options
    const resolver = createNameResolver({ servers: [server.address], family, hasIpv6: () => hasIpv6 })
    cleanup.push(() => resolver.close())
    return (before: string[] = []) => resolver.resolve(name, before)
  }
  const both = { [name]: { addresses: ['fd00::2', '10.0.0.2', '10.0.0.1', '10.0.0.1'], ttl: 7 } }

  test.each([
    [{}, ['10.0.0.1', '10.0.0.2', 'fd00::2']],
    [{ hasIpv6: false }, ['10.0.0.1', '10.0.0.2']],
    [{ family: 'ipv4' } as const, ['10.0.0.1', '10.0.0.2']],
    [{ family: 'ipv6' } as const, ['fd00::2']],
  ])('%j', async (options, addresses) => {
    const resolve = await resolverFor(both, options)
    expect(await resolve()).toEqual({ addresses, ttl: 7_000 })
  })

  test('takes IPv6 where there is nothing else, and follows aliases', async () => {
    const resolve = await resolverFor({ [name]: 'a.test', 'a.test': ['::1'] }, { hasIpv6: false })
    expect(await resolve()).toEqual({ addresses: ['::1'], ttl: 0 })
  })

  test('keeps what it had of the kind that cannot be asked for', async () => {
    const resolve = await resolverFor({ [name]: { addresses: ['10.0.0.1'], ttl: 5, ipv6: 'failing' } })
    expect(await resolve(['10.0.0.9', 'fd00::9'])).toEqual({ addresses: ['10.0.0.1', 'fd00::9'], ttl: 5_000 })
  })

  test('rejects where there is none', async () => {
    await expect((await resolverFor({}))()).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect((await resolverFor({ [name]: { broken: 'failing' } }))()).rejects.toMatchObject({ code: 'ESERVFAIL' })
    await expect((await resolverFor({ [name]: [] }))()).rejects.toMatchObject({ code: 'ENODATA' })
  })

  test('without servers of its own asks the system too', async () => {
    const resolver = createNameResolver({ family: 'ipv4', servers: undefined })
    cleanup.push(() => resolver.close())
    expect((await resolver.resolve('localhost', [])).addresses).toEqual(['127.0.0.1'])
  })
})

test('of IPv6 is reached, written as an address or found by a name', async () => {
  const server = closing(await startTarget('::1'))
  const dns = closing(await startDnsServer({ [name]: ['::1'] }))
  const written = closing(openTargets({ url: server.url }))
  expect(await written.send()).toEqual({ name: server.url, outcome: 200 })
  const url = `http://${name}:${server.port}`
  const found = closing(openTargets({ url, dns: { servers: [dns.address] } }))
  await found.targets.ready
  expect(await found.send()).toEqual({ name: `${url} ::1`, outcome: 200 })
})

test('over TLS an address answers for the name, to requests and checks alike', async () => {
  const authority = createAuthority()
  cleanup.push(authority.remove)
  const asked: string[] = []
  const server = createServer(authority.issue(name), ({ url, headers, socket }, response) => {
    asked.push([url, headers.host?.split(':')[0], 'servername' in socket ? socket.servername : ''].join(' '))
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const dns = closing(await startDnsServer({ [name]: ['127.0.0.1', '127.0.0.9'] }))
  const health = { path: '/healthz', interval: '200ms', timeout: '200ms' }
  const settings = { url: `https://${name}:${port}`, dns: { servers: [dns.address] }, health }
  const api = closing(openTargets(settings, { ca: authority.certificate }))
  await api.targets.ready
  await until(() =>
    expect(api.targets.states()).toMatchObject([
      { health: 'healthy' },
      { health: 'unhealthy', reason: 'ECONNREFUSED' },
    ]),
  )
  expect(await api.send()).toEqual({ name: `${settings.url} 127.0.0.1`, outcome: 200 })
  expect(new Set(asked)).toEqual(new Set([`/healthz ${name} ${name}`, `/ ${name} ${name}`]))

  const distrusting = closing(openTargets({ ...settings, dns: { ...settings.dns, family: 'ipv4' } }))
  await until(() => expect(distrusting.targets.states()[0]).toMatchObject({ state: 'used', health: 'unhealthy' }))
})
