import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

let issuer: TestIssuer
beforeEach(async () => {
  issuer = await startTestIssuer()
})
afterEach(() => issuer.close())

const rows = () =>
  issuer.sql(
    `SELECT application_id, result, payload FROM logs WHERE key = 'ExchangeTokenBy.ClientCredentials' ORDER BY created_at`,
  )

test('client-credentials tokens stand in the audit trail a moment later', async () => {
  const token = await issuer.managementToken()
  await expect.poll(async () => (await rows()).length).toBe(1)
  const { jti } = await issuer.verify(token, issuer.managementResource)
  expect(await rows()).toEqual([
    {
      application_id: issuer.bootstrap.id,
      result: 'Success',
      payload: {
        key: 'ExchangeTokenBy.ClientCredentials',
        result: 'Success',
        applicationId: issuer.bootstrap.id,
        applicationSecret: { name: 'Bootstrap secret' },
        ip: '127.0.0.1',
        userAgent: expect.any(String),
        params: { grant_type: 'client_credentials', resource: issuer.managementResource, scope: 'all' },
        scope: 'all',
        tokenId: jti,
      },
    },
  ])
})

test('stopping writes what is still waiting', async () => {
  await Promise.all(Array.from({ length: 20 }, () => issuer.managementToken()))
  await issuer.instances[0]!.close()
  expect(await rows()).toHaveLength(20)
})
