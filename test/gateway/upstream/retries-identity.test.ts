import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { afterEach, expect, test } from 'vitest'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { startRawTarget, wellAnswer } from '../../support/raw-targets.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

test('the target that is asked next learns the same of the caller, once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-identity-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const keyFile = join(folder, 'key.json')
  await writeFile(keyFile, JSON.stringify(await exportJWK(privateKey)))
  const failing = await startRawTarget((socket) => void socket.resetAndDestroy())
  const good = await startRawTarget((socket) => void socket.write(wellAnswer))
  cleanup.push(failing.close, good.close)
  const gateway = await startTestGateway({
    config: () => ({
      identity: { issuer: 'https://gateway.test', keyFile },
      upstreams: {
        api: {
          targets: [{ url: failing.url }, { url: good.url }],
          balance: 'round-robin',
          retries: {},
          identityAudience: 'https://orders.internal',
        },
      },
      routes: [{ id: 'orders', path: '/orders/**', audience: [orders], upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())

  expect((await gateway.call('/orders/1', { method: 'PUT', body: 'order' })).status).toBe(200)
  const fieldsOf = (head: string | undefined) =>
    head?.split('\r\n').filter((line) => !/^(?:host|connection):/i.test(line))
  expect(good.heads).toHaveLength(1)
  expect(fieldsOf(good.heads[0])).toEqual(fieldsOf(failing.heads[0]))
  const assertions = [...good.heads[0]!.matchAll(/^x-auth-assertion: (.*)\r$/gim)].map(([, text]) => text!)
  expect(assertions).toHaveLength(1)
  const keys = createRemoteJWKSet(new URL(`${gateway.url}/.well-known/surrogate/jwks.json`))
  await jwtVerify(assertions[0]!, keys, { audience: 'https://orders.internal', typ: 'surrogate-identity+jwt' })
})
