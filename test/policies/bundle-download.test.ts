import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { Secret } from '../../platform/secret.ts'
import { type PolicySource, watchPolicies } from '../../policies/decide.ts'
import { publishBundle } from '../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../policies/engine/compile/compile.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { obtainBundle } from '../../policies/policy-set.ts'
import { until } from '../support/until.ts'
import { ruleFolder } from './rule-folder.ts'

const opa = await findOpa()
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const verification = { keys: new Map([['k1', { algorithm: 'ES256' as const, key: pair.publicKey }]]) }
const key = { keyId: 'k1', algorithm: 'ES256' as const, key: pair.privateKey }

const bundleOf = async (value: string, { serial, sign = false }: { serial?: number; sign?: boolean } = {}) => {
  const rule = `package test\n\n# METADATA\n# entrypoint: true\ndecision := ${value}\n`
  const bundle = await compilePolicies({ sources: new Map([['a.rego', Buffer.from(rule)]]), opa })
  return publishBundle(bundle, { serial, ...(sign && { key }) })
}

/** A bundle server that notes what it was asked. */
const startServer = async () => {
  const self = { body: Buffer.alloc(0) as Uint8Array, etag: '', status: 200, asked: [] as (string | undefined)[][] }
  const server = createServer((request, response) => {
    const { authorization, 'if-none-match': known } = request.headers
    const status = self.status === 200 && self.etag !== '' && known === self.etag ? 304 : self.status
    self.asked.push([String(status), known, authorization])
    response.writeHead(status, self.etag ? { etag: self.etag } : {}).end(status === 200 ? self.body : undefined)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const publish = (body: Uint8Array, etag = '') => Object.assign(self, { body, etag, status: 200 })
  return Object.assign(self, { url: `http://127.0.0.1:${port}/bundle.tar.gz`, publish })
}

const follow = async (source: Omit<PolicySource, 'logger'>) => {
  const metrics = createMetrics()
  const policies = await watchPolicies({ ...source, logger: silentLogger, metrics })
  onTestFinished(policies.close)
  return { ...policies, metrics, answer: () => policies.current().evaluate('test/decision', {}) }
}

const remote = { poll: 50 }

test('a new bundle on the server is in force at the next poll; an unchanged one costs a 304', async () => {
  const server = await startServer()
  server.publish(await bundleOf('1'), '"one"')
  const policies = await follow({ path: server.url, remote: { ...remote, token: new Secret('secret') } })
  expect(policies.answer()).toBe(1)
  await until(() => expect(server.asked.at(-1)).toEqual(['304', '"one"', 'Bearer secret']))
  expect(server.asked[0]).toEqual(['200', undefined, 'Bearer secret'])
  const before = policies.current()

  server.publish(await bundleOf('2'), '"two"')
  await until(() => expect(policies.answer()).toBe(2))
  expect(before.evaluate('test/decision', {})).toBe(1)
  expect(policies.status()).toEqual({ revision: policies.current().revision })
})

test('a server without ETag is asked in vain: the same bytes are no new bundle', async () => {
  const server = await startServer()
  server.publish(await bundleOf('1'))
  const policies = await follow({ path: server.url, remote })
  const set = policies.current()
  await until(() => expect(server.asked.length).toBeGreaterThan(3))
  expect(policies.current()).toBe(set)
})

test('what cannot be used is refused once, and the last good set runs on until there is another', async () => {
  const server = await startServer()
  server.publish(await bundleOf('1'), '"one"')
  const policies = await follow({ path: server.url, remote })
  server.publish(Buffer.from('no bundle'), '"torn"')
  await until(() => expect(policies.status().lastError).toContain('not a readable bundle'))
  expect(policies.answer()).toBe(1)
  expect((await policies.metrics.render()).text).toContain('surrogate_policies_stale{policies="live"} 1')

  // Away and back again with the same bytes: still not what runs.
  server.status = 503
  await until(() => expect(policies.status().lastError).toContain('answered 503'))
  server.status = 200
  await until(() => expect(server.asked.at(-1)).toEqual(['304', '"torn"', undefined]))
  expect(policies.status().lastError).toBeDefined()

  server.publish(await bundleOf('3'), '"three"')
  await until(() => expect(policies.answer()).toBe(3))
  expect(policies.status().lastError).toBeUndefined()
  expect((await policies.metrics.render()).text).toContain('surrogate_policies_stale{policies="live"} 0')
})

test('a server that was away for a while and has nothing new is well again', async () => {
  const server = await startServer()
  server.publish(await bundleOf('1'), '"one"')
  const policies = await follow({ path: server.url, remote })
  server.status = 500
  await until(() => expect(policies.status().lastError).toContain('answered 500'))
  server.status = 200
  await until(() => expect(policies.status().lastError).toBeUndefined())
})

test('only signed bundles are taken when a key is configured', async () => {
  const server = await startServer()
  server.publish(await bundleOf('1'))
  await expect(follow({ path: server.url, remote, verification })).rejects.toThrow('is not signed')
  server.publish(await bundleOf('1', { sign: true }), '"one"')
  const policies = await follow({ path: server.url, remote, verification })
  server.publish(await bundleOf('2'), '"two"')
  await until(() => expect(policies.status().lastError).toContain('is not signed'))
  expect(policies.answer()).toBe(1)
  server.publish(await bundleOf('3', { sign: true }), '"three"')
  await until(() => expect(policies.answer()).toBe(3))

  const folder = await ruleFolder({ 'a.rego': 'package a\n' })
  await expect(follow({ path: folder, verification })).rejects.toThrow('only signed bundles are accepted')
})

test('an older bundle does not replace a newer one, signed or not, also across restarts', async () => {
  const server = await startServer()
  const cache = join(await ruleFolder({ x: '' }), 'kept.tar.gz')
  const source = { path: server.url, remote: { ...remote, cache }, verification }
  const [old, good, newer] = await Promise.all([
    bundleOf('5', { serial: 5, sign: true }),
    bundleOf('7', { serial: 7, sign: true }),
    bundleOf('8', { serial: 8, sign: true }),
  ])
  server.publish(good, '"7"')
  const policies = await follow(source)
  server.publish(old, '"5"')
  await until(() => expect(policies.status().lastError).toMatch(/serial number 5, which is older than 7/))
  server.publish(await bundleOf('1', { sign: true }), '"none"')
  await until(() => expect(policies.status().lastError).toMatch(/has no serial number, which is older than 7/))
  expect(policies.answer()).toBe(7)
  await policies.close()

  server.publish(old, '"5"')
  const again = await follow(source)
  expect(again.answer()).toBe(7)
  expect(again.status().lastError).toMatch(/older than 7/)
  server.publish(newer, '"8"')
  await until(() => expect(again.answer()).toBe(8))
})

test('a gateway starts with what it kept while the server is away; without that it does not start', async () => {
  const server = await startServer()
  const cache = join(await ruleFolder({ x: '' }), 'kept.tar.gz')
  server.publish(await bundleOf('1'), '"one"')
  const first = await follow({ path: server.url, remote: { ...remote, cache } })
  await first.close()
  server.status = 503
  await expect(follow({ path: server.url, remote })).rejects.toThrow('answered 503')
  const second = await follow({ path: server.url, remote: { ...remote, cache } })
  expect(second.answer()).toBe(1)
  expect(second.status().lastError).toContain('answered 503')
  server.publish(await bundleOf('2'), '"two"')
  await until(() => expect(second.answer()).toBe(2))
})

test('redirects are not followed, and what does not end is given up', async () => {
  const server = await startServer()
  server.status = 302
  await expect(follow({ path: server.url, remote })).rejects.toThrow('answered 302')
  await expect(follow({ path: 'http://127.0.0.1:1/b.tar.gz', remote })).rejects.toThrow('ECONNREFUSED')
})

test('a bundle that anybody on the way could replace is not taken', async () => {
  const path = 'http://bundles.example.test/b.tar.gz'
  const source = { path, logger: silentLogger }
  await expect(obtainBundle(source, { bundle: await bundleOf('1') })).rejects.toThrow('needs https, or signed bundles')
  const signed = await bundleOf('1', { sign: true })
  expect(await obtainBundle({ ...source, verification }, { bundle: signed })).toBeDefined()
})
