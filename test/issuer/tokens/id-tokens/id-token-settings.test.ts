import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  enabledExtendedClaims,
  idTokenSettingsSql,
  parseIdTokenSettings,
} from '../../../../issuer/tokens/id-tokens/id-token-settings-store.ts'
import { statement } from '../../../../platform/database/database.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const path = '/configs/id-token'
/** As a statement that reads other things too finds it. */
const besides = async () => {
  const [row] = await api.database.query<{ settings: unknown }>(
    statement('', `SELECT 1 AS other, ${idTokenSettingsSql} AS settings`),
    [],
  )
  return parseIdTokenSettings(row!.settings).enabledExtendedClaims
}

test('roles and organizations are told until something else is set, which holds for every reader at once', async () => {
  const defaults = ['roles', 'organizations', 'organization_roles']
  expect(await api.expect(200, 'GET', path)).toEqual({ enabledExtendedClaims: defaults })
  expect(await enabledExtendedClaims(api.database.query)).toEqual(defaults)
  expect(await besides()).toEqual(defaults)

  const wanted = { enabledExtendedClaims: ['custom_data', 'roles'] }
  expect(await api.expect(200, 'PUT', path, wanted)).toEqual(wanted)
  expect(await api.expect(200, 'GET', path)).toEqual(wanted)
  expect(await enabledExtendedClaims(api.database.query)).toEqual(wanted.enabledExtendedClaims)
  expect(await besides()).toEqual(wanted.enabledExtendedClaims)
  expect((await api.expect(200, 'GET', '/logs?logKey=Management.putIdTokenConfig'))[0].payload).toMatchObject({
    fields: ['enabledExtendedClaims'],
  })
})

test('none are told when an empty list is set, or no list', async () => {
  for (const nothing of [{ enabledExtendedClaims: [] }, {}]) {
    expect(await api.expect(200, 'PUT', path, nothing)).toEqual({ enabledExtendedClaims: [] })
    expect(await besides()).toEqual([])
  }
})

test('a claim that does not exist is refused, and one of a newer version is not told', async () => {
  await api.expect(400, 'PUT', path, { enabledExtendedClaims: ['password_digest'] })
  await api.database.pool.query(`UPDATE settings SET value = '{"enabledExtendedClaims": ["newer", "roles"]}'`)
  expect(await api.expect(200, 'GET', path)).toEqual({ enabledExtendedClaims: ['roles'] })
  expect(await besides()).toEqual(['roles'])
})

test('setting it needs the scope of claims; reading is enough to read it', async () => {
  const [reader, other] = [api.token({ scope: 'read' }), api.token({ scope: 'keys' })]
  await api.expect(200, 'GET', path, undefined, { token: reader })
  await api.expect(403, 'GET', path, undefined, { token: other })
  await api.expect(403, 'PUT', path, {}, { token: reader })
  await api.expect(200, 'PUT', path, {}, { token: api.token({ scope: 'claims' }) })
})
