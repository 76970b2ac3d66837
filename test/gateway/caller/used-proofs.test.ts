import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import type { ProofRecords } from '../../../gateway/caller/dpop/proof-records.ts'
import { createUsedProofs } from '../../../gateway/caller/dpop/used-proofs.ts'
import { insecureNames } from '../../../gateway/config/settings/file.ts'
import { createGateway, parseGatewayConfig } from '../../../gateway/main.ts'
import { ownProviders } from '../../../gateway/providers.ts'
import { createNonces } from '../../../platform/dpop/nonces.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { newDpopClient } from '../../support/dpop.ts'
import { orders, startUpstream } from '../../support/gateway.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'

const until = 61_000

test('a proof is used once, until it is too old, whatever times its copies say', () => {
  const proofs = createUsedProofs()
  expect(proofs.use({ id: 'a', until }, 0)).toBe('first')
  expect(proofs.use({ id: 'a', until }, 0)).toBe('again')
  expect(proofs.use({ id: 'a', until: until + 30_000 }, 60_999)).toBe('again')
  expect(proofs.use({ id: 'b', until }, 60_999)).toBe('first')
  expect(proofs.size).toBe(2)
})

test('one that comes when it is too old is never accepted: by then copies may be forgotten', () => {
  const proofs = createUsedProofs()
  expect(proofs.use({ id: 'a', until }, 0)).toBe('first')
  expect(proofs.use({ id: 'a', until }, 71_000)).toBe('full')
  expect(proofs.use({ id: 'b', until }, until)).toBe('full')
})

test('when there is no room nothing more is accepted, until there is', () => {
  const proofs = createUsedProofs({ most: 3 })
  const use = (id: string, now = 0) => proofs.use({ id, until: now + until }, now)
  expect(['a', 'b', 'c', 'd', 'a'].map((id) => use(id))).toEqual(['first', 'first', 'first', 'full', 'again'])
  expect(use('e', 69_999)).toBe('full')
  expect([use('f', 70_000), proofs.size]).toEqual(['first', 1])
})

test('nonces are those of their key and of their time', () => {
  const nonces = createNonces(Buffer.alloc(32, 1))
  const same = createNonces(Buffer.alloc(32, 1))
  const foreign = createNonces(Buffer.alloc(32, 2))
  const nonce = nonces.current(0)
  expect(nonce).toMatch(/^[\w-]{43}$/)
  expect(same.check(nonce, 119_999)).toBe('current')
  expect(same.check(nonce, 120_000)).toBe('late')
  expect(same.check(nonce, 239_999)).toBe('late')
  expect(same.check(nonce, 240_000)).toBe(undefined)
  expect(nonces.check(nonces.current(120_000), 0), 'of a clock that was set back').toBe(undefined)
  expect(foreign.check(nonce, 0)).toBe(undefined)
  for (const nothing of [undefined, null, '', 0, [nonce]]) expect(nonces.check(nothing, 0)).toBe(undefined)
})

describe('a gateway whose records', () => {
  const start = async (use: ProofRecords['use']) => {
    const [issuer, upstream, client] = await Promise.all([startTokenIssuer(), startUpstream(), newDpopClient()])
    const file = {
      version: 1,
      allowInsecure: insecureNames,
      issuers: [{ issuer: issuer.issuer }],
      upstreams: { orders: { url: upstream.url } },
      routes: [{ id: 'r', path: '/**', audience: [orders], upstream: 'orders', dpop: 'required' }],
    }
    const records = { use, nonces: createNonces(Buffer.alloc(32)), passed: new WeakMap(), close: () => {} }
    const gateway = await createGateway({
      config: parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }),
      logger: silentLogger,
      providers: { ...ownProviders, openProofRecords: () => records },
    })
    const server = createServer(gateway.handler).listen(0, '127.0.0.1')
    await Promise.all([once(server, 'listening'), gateway.ready])
    onTestFinished(async () => {
      server.close()
      await Promise.all([gateway.close(), issuer.close(), upstream.close()])
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`
    const token = await issuer.sign({ cnf: client.cnf })
    return async () => {
      const nonce = records.nonces.current(Date.now())
      const response = await fetch(url, { headers: await client.fields({ url, token, nonce }) })
      const { code } = (await response.json()) as { code?: string }
      return [response.status, code, response.headers.get('dpop-nonce') === nonce, response.headers.get('retry-after')]
    }
  }

  test('are full accepts no proof, however good', async () => {
    const call = await start(createUsedProofs({ most: 2 }).use)
    expect([(await call())[0], (await call())[0]]).toEqual([200, 200])
    expect(await call()).toEqual([401, 'use_dpop_nonce', true, null])
  })

  test('cannot be asked says so', async () => {
    const call = await start(() => Promise.reject(new Error('gone')))
    expect(await call()).toEqual([503, 'dpop_unavailable', false, '1'])
  })

  test('answer later accepts then', async () => {
    const { use } = createUsedProofs()
    const call = await start(async (...proof) => use(...proof))
    expect(await call()).toEqual([200, undefined, false, null])
  })
})
