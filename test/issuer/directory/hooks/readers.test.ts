import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

/** Who sees which part of a hook. */

let api: ManagementTest
// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
let hook: any
beforeAll(async () => {
  api = await startManagement()
  const config = { url: 'https://192.88.98.1/hook', headers: { authorization: 'Bearer of the receiver' } }
  hook = await api.expect(201, 'POST', '/hooks', { name: 'Audit', events: ['User.Created'], config })
})
afterAll(() => api.close())

const as = (scope: string) => ({ token: api.token({ scope }) })

test('a holder of read sees a hook without its signing key and the values of its headers', async () => {
  const { signingKey, webhookSecret, ...rest } = hook
  const shown = { ...rest, config: { ...rest.config, headers: { authorization: '********' } } }
  expect(await api.expect(200, 'GET', `/hooks/${hook.id}`, undefined, as('read'))).toEqual(shown)
  expect(await api.expect(200, 'GET', '/hooks', undefined, as('read users applications'))).toEqual([shown])
  const executionStats = { successCount: 0, requestCount: 0 }
  expect(await api.expect(200, 'GET', '/hooks?includeExecutionStats=true', undefined, as('read'))).toEqual([
    { ...shown, executionStats },
  ])
  const secrets = [signingKey, webhookSecret, 'Bearer of the receiver']
  for (const path of ['', '/deliveries', '/replays', '/recent-logs']) {
    const { body } = await api.call('GET', `/hooks/${hook.id}${path}`, undefined, as('read'))
    expect(secrets.filter((secret) => JSON.stringify(body).includes(secret))).toEqual([])
  }
})

test('holders of hooks and all see it whole, as existing clients know it', async () => {
  for (const scope of ['hooks', 'all', 'read hooks']) {
    expect(await api.expect(200, 'GET', `/hooks/${hook.id}`, undefined, as(scope))).toEqual(hook)
    expect(await api.expect(200, 'GET', '/hooks', undefined, as(scope))).toEqual([hook])
  }
})

test('the signing key alone is shown to those who may have it, and that is in the audit trail', async () => {
  const path = `/hooks/${hook.id}/signing-key`
  const trail = () => api.expect(200, 'GET', '/logs?logKey=Management.getHookSigningKey')
  expect((await api.call('GET', path, undefined, as('read users rbac'))).status).toBe(403)
  expect((await api.call('GET', '/hooks/none/signing-key')).status).toBe(404)
  expect(await trail()).toEqual([])

  const { signingKey, webhookSecret } = hook
  expect(await api.expect(200, 'GET', path, undefined, as('hooks'))).toEqual({ signingKey, webhookSecret })
  const [row, ...others] = await trail()
  expect(row.payload).toMatchObject({ applicationId: 'bootstrap', path, params: { id: hook.id }, events: [] })
  expect(others).toEqual([])
  expect(JSON.stringify(row)).not.toContain(signingKey)
  expect(await api.events()).toEqual([])
})
