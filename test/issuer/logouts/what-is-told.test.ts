import { afterAll, beforeAll, expect, test } from 'vitest'
import { expireSessions } from '../../../issuer/tokens/authorizations/end-store.ts'
import { authorize } from '../../support/authorizations.ts'
import { type BackChannel, startBackChannel } from '../../support/back-channel.ts'
import { basic, formOf, request } from '../../support/issuer.ts'

/** Of which ends of what applications got their back channel tells; no relay sends here. */

let channel: BackChannel
beforeAll(async () => {
  channel = await startBackChannel()
})
afterAll(() => channel.close())

const uri = 'https://shop.example.test/logout'

/** A person at two applications, at the second with offline access. */
const somebody = async () => {
  const [shop, partner] = [await channel.client(uri), await channel.client(uri)]
  const { sids, ...rest } = await channel.signIn([shop])
  const offline = await authorize(channel.issuer, partner, rest.person.id, { sessionId: rest.sessionId })
  const { body } = await offline.redeem()
  return { ...rest, shop, partner, sids: [sids[0]!, offline.sid], refreshToken: body.refresh_token as string }
}
type Somebody = Awaited<ReturnType<typeof somebody>>

const told = async ({ sids }: Somebody) => {
  const rows = await channel.issuer.sql<{ id: string }>(
    'SELECT authorization_id AS id FROM logout_deliveries WHERE authorization_id = ANY ($1)',
    [sids],
  )
  return sids.flatMap((sid, index) => (rows.some(({ id }) => id === sid) ? [index === 0 ? 'shop' : 'partner'] : []))
}
const api = async (method: string, path: string, body?: unknown) => {
  const { status } = await channel.issuer.api(method, path, body)
  expect(status).toBeLessThan(300)
}
const revoke = async (client: Somebody['shop'], token: string) => {
  const { status } = await request(`${channel.issuer.issuer}/token/revocation`, {
    method: 'POST',
    headers: { authorization: basic(client) },
    body: formOf({ token }),
  })
  expect(status).toBe(200)
}

const rows: [string, (somebody: Somebody) => Promise<unknown>, string[]][] = [
  ['signing out here', ({ browser, idToken }) => channel.signOut(browser, idToken), ['shop']],
  [
    'an administrator ends the session',
    ({ person, sessionId }) => api('DELETE', `/users/${person.id}/sessions/${sessionId}`),
    ['shop', 'partner'],
  ],
  [
    'an administrator ends a grant',
    ({ person, sids }) => api('DELETE', `/users/${person.id}/grants/${sids[1]}`),
    ['partner'],
  ],
  [
    'a new password',
    ({ person }) => api('PATCH', `/users/${person.id}/password`, { password: 'another long enough 1' }),
    ['shop', 'partner'],
  ],
  [
    'suspension',
    ({ person }) => api('PATCH', `/users/${person.id}/is-suspended`, { isSuspended: true }),
    ['shop', 'partner'],
  ],
  ['deletion', ({ person }) => api('DELETE', `/users/${person.id}`), ['shop', 'partner']],
  ['the application gives its token up', ({ partner, refreshToken }) => revoke(partner, refreshToken), []],
  [
    'a time that was known from the beginning',
    async ({ sessionId }) => {
      await channel.issuer.sql(`UPDATE sessions SET expires_at = now() WHERE id = $1`, [sessionId])
      expect(await channel.issuer.database.transaction((trx) => expireSessions(trx, 100))).toHaveLength(1)
    },
    [],
  ],
]

test.each(rows)('%s', async (_name, end, expected) => {
  const one = await somebody()
  await end(one)
  expect(await told(one)).toEqual(expected)
})

test('who switches account in a browser is signed out of what the other had there', async () => {
  const one = await somebody()
  const other = await channel.flow.createPerson()
  await channel.flow.signIn(one.browser, one.shop, other, { prompt: 'login', scope: 'openid' })
  expect(await told(one)).toEqual(['shop'])
})
