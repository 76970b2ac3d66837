import { expect, onTestFinished, test } from 'vitest'
import { endSessionHere } from '../../../issuer/tokens/authorizations/end.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startTestIssuer } from '../../support/issuer.ts'
import { recordingIn } from '../../support/recording.ts'
import { createSessions } from '../../support/sessions.ts'
import { until } from '../../support/until.ts'

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
  const sessions = createSessions(issuer)
  const signIn = async () => {
    const session = await sessions.signIn()
    const sids = [
      await sessions.authorize(session, first, { isOffline: true }),
      await sessions.authorize(session, second),
      await sessions.authorize(session, second, { isOffline: true }),
    ]
    return { sessionId: session.id, sids }
  }
  const [ada, eve] = [await signIn(), await signIn()]
  const tokens = await Promise.all(
    [...ada.sids, ...eve.sids].map((sid) => gateway.issuer.sign({ scope: 'read:orders', sid })),
  )
  const statuses = async () =>
    Promise.all(tokens.map(async (token) => (await gateway.call('/orders/1', { token })).status))
  expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200])
  await issuer.database.transaction((trx) =>
    endSessionHere(recordingIn(trx), {
      sessionId: ada.sessionId,
      clientId: first.id,
      reason: 'logout',
      endedBy: 'ada',
    }),
  )
  await until(async () => expect(await statuses()).toEqual([401, 401, 200, 200, 200, 200]), 1_000)
})
