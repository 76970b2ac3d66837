import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createFederation } from '../../../issuer/connectors/federation.ts'
import {
  createIdentityProviderStore,
  type NewIdentityProvider,
} from '../../../issuer/connectors/providers/identity-provider-store.ts'
import { createSettings } from '../../../issuer/directory/sign-in-experience/settings.ts'
import { signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { migrations } from '../../../migrations/index.ts'
import { migrate, type Query } from '../../../platform/database/database.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/until.ts'

/** Connectors in memory, as long as nobody changes one. */

const envelope = createEnvelope({ current: randomBytes(32) })
const store = createIdentityProviderStore(envelope)
const config = { issuer: 'https://id.acme.example', clientId: 'a', clientSecret: 'b' }
const social: NewIdentityProvider = {
  ...{ id: 'acme', kind: 'social', provider: 'oidc', name: null, target: 'acme', config, domains: [] },
  ...{ syncProfile: false, look: { name: 'Acme' } },
}
const enterprise: NewIdentityProvider = {
  ...{ ...social, id: 'globex', kind: 'sso', provider: 'OIDC', name: 'Globex', target: null, look: {} },
  domains: ['globex.example'],
}

const open = async ({ database }: TestDatabase) => {
  const asked: string[] = []
  const query: Query = (statement, values) => {
    asked.push(statement.name)
    return database.query(statement, values)
  }
  // Nobody tells it of changes: it looks by itself.
  const settings = await createSettings({ database, logger: silentLogger })
  onTestFinished(() => settings.close())
  const experience = signInExperience.schema.parse({
    socialSignInConnectorTargets: ['acme'],
    singleSignOnEnabled: true,
  })
  const federation = createFederation({
    ...{ database: { query }, envelope, experience: () => experience, memory: settings.memory, mocks: false },
    ...{ outbound: { allowedNetworks: [] }, now: () => new Date() },
  })
  onTestFinished(() => federation.close())
  const known = async () => {
    const [page, enterpriseOf] = await Promise.all([federation.offered({}), federation.byDomain('Globex.example')])
    const one = async (id: string) => (await federation.open(id).catch(() => undefined))?.connector.name
    return { page: page.map(({ name }) => name), enterprise: enterpriseOf?.name, opened: await one('acme') }
  }
  return { known, asked }
}

test('are asked for once for everybody, until one is changed or gone, whoever changes it', async () => {
  const test = await createTestDatabase()
  onTestFinished(test.close)
  const { database } = test
  for (const row of [social, enterprise]) await database.transaction((trx) => store.insert(trx, row))
  const { known, asked } = await open(test)
  const before = { page: ['Acme'], enterprise: 'Globex', opened: 'Acme' }
  const answers = await Promise.all(Array.from({ length: 20 }, known))
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify(before)]))
  expect(asked.toSorted()).toEqual([
    'identity-provider-find',
    'identity-provider-of-domain',
    'identity-provider-of-targets',
  ])

  // As an issuer of the version before does.
  await database.pool.query(`UPDATE identity_providers SET look = '{"name": "Acme, Inc."}' WHERE id = 'acme'`)
  await until(async () => expect(await known()).toEqual({ ...before, page: ['Acme, Inc.'], opened: 'Acme, Inc.' }))
  await database.transaction((trx) => store.update(trx, { ...enterprise, domains: ['globex.test'] }))
  await until(async () => expect((await known()).enterprise).toBeUndefined())
  await database.pool.query('DELETE FROM identity_providers')
  await until(async () => expect(await known()).toEqual({ page: [], enterprise: undefined, opened: undefined }))
})

test('one that there was not is found as soon as there is', async () => {
  const test = await createTestDatabase()
  onTestFinished(test.close)
  const { known } = await open(test)
  expect(await known()).toEqual({ page: [], enterprise: undefined, opened: undefined })
  await test.database.transaction((trx) => store.insert(trx, social))
  // It was asked for by its id and not found, which nobody remembers.
  expect((await known()).opened).toBe('Acme')
  await until(async () => expect((await known()).page).toEqual(['Acme']))
})

test('those of a database of the version before are known, and what becomes of them', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0051-identity-providers-in-memory')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  onTestFinished(old.close)
  for (const row of [social, enterprise]) await old.database.transaction((trx) => store.insert(trx, row))
  await migrate(old.database, migrations)
  const { known } = await open(old)
  expect(await known()).toEqual({ page: ['Acme'], enterprise: 'Globex', opened: 'Acme' })
  await old.database.pool.query(`DELETE FROM identity_providers WHERE kind = 'sso'`)
  await until(async () => expect(await known()).toEqual({ page: ['Acme'], enterprise: undefined, opened: 'Acme' }))
})
