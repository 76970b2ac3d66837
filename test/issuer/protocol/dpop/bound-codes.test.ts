import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type CodeFlow,
  callback,
  createCodeFlow,
  type Person,
  parametersOf,
  verifier,
} from '../../../support/code-flow.ts'
import { createDpopParty, type DpopParty } from '../../../support/dpop-party.ts'
import { type FormValues, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** Codes that are bound to a key (RFC 9449 §10), which the authorization request or its proof names. */

let issuer: TestIssuer
let flow: CodeFlow
let person: Person
let owner: DpopParty
let thief: DpopParty
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  flow = createCodeFlow(issuer)
  person = await flow.createPerson()
  client = await flow.createClient({ type: 'Traditional' })
  ;[owner, thief] = await Promise.all([createDpopParty(issuer), createDpopParty(issuer)])
})
afterAll(() => issuer.close())

const form = (code: string) => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: callback,
  code_verifier: verifier,
})
const redeemedBy = (party: DpopParty, code: string) => party.token(client, form(code))

/** The code is good for its owner's key alone, and stays until it is used. */
const isOwners = async (code: string) => {
  for (let round = 0; round < 6; round++)
    expect((await redeemedBy(thief, code)).body).toMatchObject({ error: 'invalid_grant' })
  expect((await flow.redeem(client, code)).body).toMatchObject({ error: 'invalid_grant' })
  const { status, body } = await redeemedBy(owner, code)
  expect([status, body.token_type]).toEqual([200, 'DPoP'])
  return body
}

test('dpop_jkt at the authorization endpoint', async () => {
  await isOwners(await flow.signIn(flow.browser(), client, person, { dpop_jkt: owner.thumbprint }))
})

test('a replay with another key ends nothing; with the key it does', async () => {
  const code = await flow.signIn(flow.browser(), client, person, { dpop_jkt: owner.thumbprint })
  const { access_token: token } = await isOwners(code)
  await issuer.sql(`UPDATE authorization_codes SET redeemed_at = redeemed_at - interval '2 seconds'`)
  expect((await redeemedBy(thief, code)).body).toMatchObject({ error: 'invalid_grant' })
  expect((await owner.userinfo(token)).status).toBe(200)
  expect((await redeemedBy(owner, code)).body).toMatchObject({ error: 'invalid_grant' })
  expect((await owner.userinfo(token)).status).toBe(401)
})

test.each(['short', `${'x'.repeat(42)}=`, 'x'.repeat(44)])(
  'a dpop_jkt that is no thumbprint (%s) is told the client',
  async (dpop_jkt) => {
    const answer = parametersOf(await flow.ask(flow.browser(), client, { dpop_jkt }))
    expect(answer).toMatchObject({ error: 'invalid_request', error_description: expect.stringContaining('dpop_jkt') })
  },
)

describe('requests that are sent ahead', () => {
  const pushed = (parameters: FormValues = {}) => ({
    redirect_uri: callback,
    response_type: 'code',
    scope: 'openid',
    code_challenge: new URL(flow.authorizationUrl(client)).searchParams.get('code_challenge')!,
    code_challenge_method: 'S256',
    ...parameters,
  })
  const codeOf = async (requestUri: string) => {
    const browser = flow.browser()
    const page = await browser.get(
      `${issuer.issuer}/auth?${new URLSearchParams({ client_id: client.id, request_uri: requestUri })}`,
    )
    return parametersOf(await browser.submit(page, flow.credentials(person)))['code']!
  }

  test('with a proof are for its key', async () => {
    const { status, body } = await owner.push(client, pushed())
    expect(status).toBe(201)
    await isOwners(await codeOf(body.request_uri))
  })

  test('with a proof and dpop_jkt are so when both name one key', async () => {
    const { status, body } = await owner.push(client, pushed({ dpop_jkt: owner.thumbprint }))
    expect(status).toBe(201)
    await isOwners(await codeOf(body.request_uri))
  })

  test('are refused when the proof is of another key', async () => {
    const answer = await owner.push(client, pushed({ dpop_jkt: thief.thumbprint }))
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('want the nonce and a good proof, for this address, once', async () => {
    const none = await owner.push(client, pushed(), { nonce: undefined })
    expect(none).toMatchObject({ status: 400, body: { error: 'use_dpop_nonce' } })
    expect(none.headers.get('dpop-nonce')).toEqual(expect.any(String))
    const htu = `${issuer.issuer}/token`
    expect((await owner.push(client, pushed(), { claims: { htu } })).body.error).toBe('invalid_dpop_proof')
    const url = `${issuer.issuer}/request`
    const sent = await owner.proof({ method: 'POST', url, nonce: await owner.nonce() })
    expect((await owner.push(client, pushed(), { sent })).status).toBe(201)
    expect((await owner.push(client, pushed(), { sent })).body.error).toBe('invalid_dpop_proof')
  })
})
