import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const path = '/configs/oidc/cookie-keys'

test('whoever looks after the keys of cookies finds that there are none', async () => {
  expect(await api.expect(200, 'GET', path)).toEqual([])
  expect(await api.call('DELETE', `${path}/any`)).toMatchObject({
    status: 404,
    body: { code: 'oidc.key_not_found', data: { id: 'any' } },
  })
  expect(await api.expect(200, 'GET', path, undefined, { token: api.token({ scope: 'keys' }) })).toEqual([])
  for (const [method, address] of [['GET', path] as const, ['DELETE', `${path}/any`] as const])
    expect(await api.call(method, address, undefined, { token: api.token({ scope: 'read' }) })).toMatchObject({
      status: 403,
      body: { code: 'auth.forbidden' },
    })
  expect(await api.call('POST', `${path}/rotate`)).toMatchObject({ status: 405 })
  expect(await api.expect(200, 'GET', '/logs?logKey=Management.deleteCookieKey')).toEqual([])
})
