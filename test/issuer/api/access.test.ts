import { afterAll, beforeAll, expect, test } from 'vitest'
import { createManagementApi } from '../../../issuer/api/mount.ts'
import { route } from '../../../issuer/base/route.ts'
import { listen, type RunningServer } from '../../../platform/http/http-server.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { noProofs } from '../../support/dpop.ts'

const operation = (operationId: string, path: string) => ({
  method: 'GET' as const,
  path,
  operationId,
  summary: 'Answers its own name.',
  status: 200,
  handle: async () => ({ body: operationId }),
})

let server: RunningServer

beforeAll(async () => {
  const app = createManagementApi({
    routes: [
      route({ ...operation('getManaged', '/managed'), scope: 'users' }),
      route({ ...operation('getOwn', '/own'), access: 'account' }),
      route({ ...operation('getStep', '/step'), access: 'interaction' }),
      route({ ...operation('getView', '/view'), access: 'console' }),
    ],
    verify: async () => ({ sub: 'machine', scope: 'all', aud: 'urn:management' }),
    indicators: ['urn:management'],
    baseUrl: 'http://issuer.test',
    clientAddress: () => '127.0.0.1',
    proofs: noProofs,
    idempotency: { run: (call, handle) => handle(call.context) },
    query: async () => [],
    logger: silentLogger,
  })
  server = await listen({ name: 'the API', handler: app, host: '127.0.0.1', port: 0, setting: 'PORT' })
})

afterAll(() => server.close())

const get = (path: string) => fetch(`${server.url}/api${path}`, { headers: { authorization: 'Bearer token' } })

test('an operation for people cannot be called with a token of a machine', async () => {
  expect(await (await get('/managed')).json()).toBe('getManaged')
  for (const path of ['/own', '/step', '/view']) expect([path, (await get(path)).status]).toEqual([path, 404])
})

test('and the API description does not offer it', async () => {
  const { paths } = (await (await get('/openapi.json')).json()) as { paths: Record<string, unknown> }
  expect(Object.keys(paths)).toContain('/managed')
  expect(Object.keys(paths).filter((path) => ['/own', '/step', '/view'].includes(path))).toEqual([])
})
