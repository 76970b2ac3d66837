import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CodeFlow, callback, createCodeFlow, type Person, verifier } from '../../../support/code-flow.ts'
import { createDpopParty, type DpopParty } from '../../../support/dpop-party.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** Refresh tokens and the key of their client (RFC 9449 §5). */

let issuer: TestIssuer
let flow: CodeFlow
let person: Person
let owner: DpopParty
let thief: DpopParty
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2, config: { refreshTokenLeeway: 10 } })
  flow = createCodeFlow(issuer)
  person = await flow.createPerson()
  ;[owner, thief] = await Promise.all([createDpopParty(issuer), createDpopParty(issuer)])
})
afterAll(() => issuer.close())

const signedIn = async (client: TestApplication): Promise<string> => {
  const code = await flow.signIn(flow.browser(), client, person)
  const form = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: verifier }
  const { body } = await owner.token(client, form)
  expect(body).toMatchObject({ token_type: 'DPoP', refresh_token: expect.any(String) })
  return body.refresh_token
}
const refresh = (party: DpopParty, client: TestApplication, token: string, options = {}) =>
  party.token(client, { grant_type: 'refresh_token', refresh_token: token }, options)
const bound = { status: 400, body: { error: 'invalid_grant', reason: 'refresh_token_bound' } }

describe.each(['Native', 'SPA'])('of a public client (%s)', (type) => {
  // T 113
  test('another key, or none, is refused and uses nothing up', async () => {
    const client = await flow.createClient({ type })
    const token = await signedIn(client)
    expect(await refresh(thief, client, token)).toMatchObject(bound)
    expect(await flow.refresh(client, token)).toMatchObject(bound)
    const next = await refresh(owner, client, token)
    expect(next).toMatchObject({ status: 200, body: { token_type: 'DPoP', refresh_token: expect.any(String) } })
    expect(next.body.refresh_token).not.toBe(token)
  })

  test('so is every one that takes its place', async () => {
    const client = await flow.createClient({ type })
    let token = await signedIn(client)
    for (let round = 0; round < 3; round++) {
      token = (await refresh(owner, client, token)).body.refresh_token
      expect(await refresh(thief, client, token)).toMatchObject(bound)
      expect(await flow.refresh(client, token)).toMatchObject(bound)
    }
  })

  test('a copy of one that was replaced ends nothing without the key', async () => {
    const client = await flow.createClient({ type })
    const token = await signedIn(client)
    const { body } = await refresh(owner, client, token)
    await issuer.sql(
      `UPDATE refresh_tokens SET rotated_at = rotated_at - interval '1 minute' WHERE rotated_at IS NOT NULL`,
    )
    expect(await refresh(thief, client, token)).toMatchObject(bound)
    expect((await refresh(owner, client, body.refresh_token)).status).toBe(200)
    expect(await refresh(owner, client, token)).toMatchObject({ body: { reason: 'refresh_token_reused' } })
  })

  test('many at once with the key get the same next one, at both instances', async () => {
    const client = await flow.createClient({ type })
    const token = await signedIn(client)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        refresh(index % 4 === 3 ? thief : owner, client, token, { instance: index % 2 }),
      ),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
    const next = new Set(answers.flatMap(({ body }) => body.refresh_token ?? []))
    expect(next.size).toBe(1)
    expect(await refresh(thief, client, [...next][0]!)).toMatchObject(bound)
  })
})

test('one that was bound to no key is bound from the first proof on', async () => {
  const client = await flow.createClient()
  const code = await flow.signIn(flow.browser(), client, person)
  const first = (await flow.redeem(client, code)).body.refresh_token
  const second = (await flow.refresh(client, first)).body.refresh_token
  const third = (await refresh(owner, client, second)).body.refresh_token
  expect(await flow.refresh(client, third)).toMatchObject(bound)
  expect((await refresh(owner, client, third)).status).toBe(200)
})

test('a client that proves who it is may change its key, and gets tokens bound to the new one', async () => {
  const client = await flow.createClient({ type: 'Traditional' })
  const token = await signedIn(client)
  const { status, body } = await refresh(thief, client, token)
  expect([status, body.token_type]).toEqual([200, 'DPoP'])
  expect((await thief.userinfo(body.access_token)).status).toBe(200)
  expect((await owner.userinfo(body.access_token)).status).toBe(401)
  expect((await refresh(owner, { id: client.id }, token)).body.error).toBe('invalid_client')
})
