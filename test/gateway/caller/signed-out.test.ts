import { expect, onTestFinished, test } from 'vitest'
import { insertAuthorization } from '../../../issuer/tokens/authorizations/authorization-store.ts'
import { endSessionHere } from '../../../issuer/tokens/authorizations/end.ts'
import { insertSession } from '../../../issuer/tokens/sessions/session-store.ts'
import { newSignInSid } from '../../../issuer/tokens/sid.ts'
import { newId, randomToken } from '../../../platform/ids.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'

/** A person in a browser, and what each of these applications got there. */
const signIn = async (issuer: TestIssuer, clients: readonly { id: string; isOffline: boolean }[]) => {
  const { id: userId } = await issuer.createUser()
  const sessionId = newId()
  const { query } = issuer.database
  await insertSession(query, {
    id: sessionId,
    cookie: randomToken(),
    userId,
    isPersistent: true,
    amr: ['pwd'],
    acr: 'urn:surrogate:acr:basic',
    interaction: { interactionEvent: 'SignIn', userId, verificationRecords: [], signInContext: {} },
    address: '192.0.2.1',
    userAgent: 'A browser',
    idleTtl: 3_600,
    ttl: 86_400,
  })
  const sids = clients.map(() => newSignInSid())
  for (const [index, { id: clientId, isOffline }] of clients.entries()) {
    const made = await insertAuthorization(query, {
      id: sids[index]!,
      sessionId,
      userId,
      clientId,
      scopes: ['openid'],
      resources: [],
      organizationId: undefined,
      isOffline,
      refreshTtl: 1_209_600,
      code: randomToken(),
      redirectUri: 'https://app.example.test/cb',
      codeChallenge: undefined,
      nonce: undefined,
    })
    expect(made).toBe(true)
  }
  return { sessionId, sids }
}

test('signing out ends at the gateway within a second, for the applications that it ends for and for nobody else', async () => {
  const issuer = await startTestIssuer()
  onTestFinished(() => issuer.close())
  const reader = await issuer.createMachine(issuer.managementResource, ['revocations'])
  const gateway = await startTestGateway({
    config: ({ issuer: { issuer: signer } }) => ({
      issuers: [
        {
          issuer: signer,
          client: { id: reader.id, secret: reader.secret },
          revocations: { mode: 'feed', url: `${issuer.issuer}/revocations` },
        },
      ],
    }),
  })
  onTestFinished(() => gateway.close())
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }), 50_000)

  const [first, second] = [
    await issuer.createApplication({ type: 'SPA' }),
    await issuer.createApplication({ type: 'SPA' }),
  ]
  const clients = [
    { id: first.id, isOffline: true },
    { id: second.id, isOffline: false },
    { id: second.id, isOffline: true },
  ]
  const [ada, eve] = [await signIn(issuer, clients), await signIn(issuer, clients)]
  const tokens = await Promise.all(
    [...ada.sids, ...eve.sids].map((sid) => gateway.issuer.sign({ scope: 'read:orders', sid })),
  )
  const statuses = async () =>
    Promise.all(tokens.map(async (token) => (await gateway.call('/orders/1', { token })).status))
  expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200])
  await issuer.database.transaction((trx) =>
    endSessionHere(trx, { sessionId: ada.sessionId, clientId: first.id, reason: 'logout', endedBy: 'ada' }),
  )
  await until(async () => expect(await statuses()).toEqual([401, 401, 200, 200, 200, 200]), 1_000)
})
