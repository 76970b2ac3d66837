import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createConnectorStore } from '../../../deliveries/messages/connector-store.ts'
import { migrations } from '../../../migrations/index.ts'
import { migrate } from '../../../platform/database/database.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { createTestDatabase } from '../../support/database.ts'
import { startTestIssuer } from '../../support/issuer.ts'
import { localProviders } from '../../support/messages.ts'

test('a database of the version before keeps its identities, its connectors and its organizations’ settings', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0039-identity-providers')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  const keyEncryptionKey = randomBytes(32)
  const store = createConnectorStore(createEnvelope({ current: keyEncryptionKey }))
  const row = { syncProfile: true, metadata: {} }
  const config = { clientId: 'a', clientSecret: 'b' }
  const social = { ...row, connectorId: 'mock-social-connector', type: 'Social' as const, config }
  const insert = (connector: Parameters<typeof store.insert>[1]) =>
    old.database.transaction((query) => store.insert(query, connector))
  await insert({ ...social, id: 'first' })
  await insert({ ...social, id: 'second' })
  const sms = { apiKey: 'k', apiSecret: 's', brandName: 'b' }
  await insert({ ...row, id: 'sms', connectorId: 'vonage-sms', type: 'Sms', config: sms })
  await sql(`UPDATE connectors SET created_at = created_at + interval '1 second' WHERE id = 'sms'`)
  const identities = (github: string) =>
    JSON.stringify({ github: { userId: github }, gitlab: { userId: '1' }, odd: {} })
  // Of two with the same identity, which the version before never made, the older one keeps it.
  await sql(
    `INSERT INTO users (id, name, identities, created_at)
     VALUES ('ada', 'Ada', $1, now() - interval '1 day'), ('bob', 'Bob', $2, now()), ('eve', 'Eve', '{}', now())`,
    [identities('7'), identities('8')],
  )
  await sql(`INSERT INTO organizations (id, name) VALUES ('acme', 'Acme')`)
  await sql(
    `INSERT INTO organization_jit_sso_connectors (organization_id, sso_connector_id) VALUES ('acme', 'for later')`,
  )
  await migrate(old.database, migrations)

  const held = async () => (await sql('SELECT * FROM user_identities ORDER BY target, subject')).map(Object.values)
  expect(await held()).toEqual([
    ['github', '7', 'ada'],
    ['github', '8', 'bob'],
    ['gitlab', '1', 'ada'],
  ])
  const messages = { ...localProviders, mockFolder: '.' }
  const issuer = await startTestIssuer({ test: old, config: { keyEncryptionKey, messages } })
  onTestFinished(issuer.close)
  const connectors = (await issuer.api('GET', '/connectors')).body
  expect(connectors).toMatchObject([{ target: 'mock-social', syncProfile: true }, { id: 'sms' }])
  const { id } = connectors[0]
  expect((await issuer.api('GET', '/organizations/acme/jit/sso-connectors')).body).toMatchObject([{ id: 'for later' }])
  // The configuration can still be opened.
  const request = { state: 'abc', redirectUri: 'https://app.example/linked' }
  expect((await issuer.api('POST', `/connectors/${id}/authorization-uri`, request)).status).toBe(200)

  // As an issuer of the version before links, replaces and ends.
  const link = (user: string, value: object) =>
    sql('UPDATE users SET identities = $2, updated_at = now() WHERE id = $1', [user, JSON.stringify(value)])
  await link('bob', { gitlab: { userId: '1' }, github: { userId: '9' } })
  await link('ada', { github: { userId: '8' } })
  await expect(link('eve', { github: { userId: '9' } })).rejects.toMatchObject({ constraint: 'user_identities_once' })
  await link('eve', { gitlab: { userId: '1' } })
  await sql(`DELETE FROM users WHERE id = 'ada'`)
  expect(await held()).toEqual([
    ['github', '9', 'bob'],
    ['gitlab', '1', 'eve'],
  ])
})
