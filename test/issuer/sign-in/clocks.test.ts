import { createRemoteJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { type CodeFlow, createCodeFlow, type Person, parametersOf } from '../../support/code-flow.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/**
 * Almost five minutes lie between the clocks of issuer and database. What has two minutes left is over by an issuer's
 * clock that is ahead, and what has been over for one is not by one that is behind: the database's decides.
 */

/** In seconds. SDKs take ID tokens whose `iat` is at most 300 s from their own clock. */
const differences = [290, -290]
const left = 120
const over = -60

describe.each(differences)('with the clock of the issuer %i seconds off,', (difference) => {
  let issuer: TestIssuer
  let flow: CodeFlow
  let client: TestApplication
  let person: Person
  beforeAll(async () => {
    issuer = await startTestIssuer({ now: () => new Date(Date.now() + difference * 1_000) })
    flow = createCodeFlow(issuer)
    client = await flow.createClient()
  })
  afterAll(() => issuer.close())
  beforeEach(async () => {
    person = await flow.createPerson()
  })

  const endsIn = (table: string, seconds: number, where: string, value: unknown) =>
    issuer.sql(`UPDATE ${table} SET expires_at = now() + $2 * interval '1 second' WHERE ${where} = $1`, [
      value,
      seconds,
    ])
  const signedIn = async () => {
    const browser = flow.browser()
    const { body } = await flow.redeem(client, await flow.signIn(browser, client, person))
    return { browser, body }
  }

  test('a code', async () => {
    const redeem = async (seconds: number) => {
      const code = await flow.signIn(flow.browser(), client, person)
      await endsIn('authorization_codes', seconds, 'digest', tokenDigest('authorization-code', code))
      return flow.redeem(client, code)
    }
    expect(await redeem(left)).toMatchObject({ status: 200 })
    expect(await redeem(over)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('a session, and how long ago somebody signed in', async () => {
    const { browser } = await signedIn()
    const silently = async (parameters = {}) =>
      parametersOf(await flow.ask(browser, client, { prompt: 'none', ...parameters }))
    await endsIn('sessions', left, 'user_id', person.id)
    expect(await silently({ max_age: '60' })).toHaveProperty('code')
    await issuer.sql(`UPDATE sessions SET authenticated_at = now() - interval '61 seconds' WHERE user_id = $1`, [
      person.id,
    ])
    expect(await silently({ max_age: '60' })).toMatchObject({ error: 'login_required' })
    expect(await silently()).toHaveProperty('code')
    await issuer.sql(`UPDATE sessions SET last_seen_at = now(), idle_ttl = $2 WHERE user_id = $1`, [person.id, left])
    expect(await silently()).toHaveProperty('code')
    await issuer.sql(
      `UPDATE sessions SET last_seen_at = now() - (idle_ttl + 60) * interval '1 second' WHERE user_id = $1`,
      [person.id],
    )
    expect(await silently()).toMatchObject({ error: 'login_required' })
    await issuer.sql(`UPDATE sessions SET last_seen_at = now() WHERE user_id = $1`, [person.id])
    expect(await silently()).toHaveProperty('code')
    await endsIn('sessions', over, 'user_id', person.id)
    expect(await silently()).toMatchObject({ error: 'login_required' })
  })

  test('a refresh token, and the leeway of one that was replaced', async () => {
    const { body } = await signedIn()
    const first = body.refresh_token
    await endsIn('refresh_tokens', left, 'digest', tokenDigest('refresh-token', first))
    const { body: next } = await flow.refresh(client, first)
    expect(await flow.refresh(client, first)).toMatchObject({
      status: 200,
      body: { refresh_token: next.refresh_token },
    })
    await endsIn('refresh_tokens', over, 'digest', tokenDigest('refresh-token', next.refresh_token))
    expect(await flow.refresh(client, next.refresh_token)).toMatchObject({
      status: 400,
      body: { reason: 'refresh_token_expired' },
    })
    const { body: another } = await signedIn()
    await flow.refresh(client, another.refresh_token)
    await issuer.sql(`UPDATE refresh_tokens SET rotated_at = now() - interval '11 seconds' WHERE digest = $1`, [
      tokenDigest('refresh-token', another.refresh_token),
    ])
    expect(await flow.refresh(client, another.refresh_token)).toMatchObject({
      status: 400,
      body: { reason: 'refresh_token_reused' },
    })
  })

  test('an interaction, a proof, and a request that was sent ahead', async () => {
    const submitted = async (seconds: number) => {
      const browser = flow.browser()
      const page = await flow.ask(browser, client)
      await endsIn('interactions', seconds, 'id', new URL(page.url).pathname.split('/').at(-1))
      return browser.submit(page, flow.credentials(person))
    }
    expect(parametersOf(await submitted(left))).toHaveProperty('code')
    expect(await submitted(over)).toMatchObject({ status: 400, location: undefined })

    const partner = await flow.createClient({ type: 'SPA', isThirdParty: true })
    const allowed = async (seconds: number) => {
      const browser = flow.browser()
      const consent = await browser.submit(await flow.ask(browser, partner), flow.credentials(person))
      await endsIn('proofs', seconds, 'user_id', person.id)
      return browser.submit(consent, { choice: 'allow' }, { with: 'choice' })
    }
    expect(parametersOf(await allowed(left))).toHaveProperty('code')
    expect((await allowed(over)).location).toBeUndefined()

    const web = await flow.createClient({ type: 'Traditional' })
    const opened = async (seconds: number) => {
      const { searchParams } = new URL(flow.authorizationUrl(web))
      const headers = { authorization: basic(web) }
      const { body } = await request(`${issuer.issuer}/request`, { method: 'POST', headers, body: searchParams })
      await issuer.sql(`UPDATE pushed_requests SET expires_at = now() + $1 * interval '1 second'`, [seconds])
      const asked = formOf({ client_id: web.id, request_uri: body.request_uri })
      return flow.browser().get(`${issuer.issuer}/auth?${asked}`)
    }
    expect((await opened(left)).forms[0]?.names).toContain('password')
    expect((await opened(over)).status).toBe(400)
  })

  test('tokens say when they are issued by the clock of the issuer, as far off as SDKs bear', async () => {
    const now = () => Math.floor(Date.now() / 1_000)
    const from = now()
    const { body } = await flow.redeem(client, await flow.signIn(flow.browser(), client, person))
    const to = now()
    const keys = createRemoteJWKSet(new URL(`${issuer.url}/oidc/jwks`))
    const { payload } = await jwtVerify(body.id_token, keys, {
      issuer: issuer.issuer,
      audience: client.id,
      clockTolerance: 300,
    })
    const { iat, exp, auth_time: authTime } = payload as { iat: number; exp: number; auth_time: number }
    const expectBetween = (time: number) => {
      expect(time).toBeGreaterThanOrEqual(from)
      expect(time).toBeLessThanOrEqual(to)
    }
    expectBetween(iat - difference)
    expect(exp - iat).toBe(3_600)
    // Kept by the database, so that `max_age` is reckoned with one clock.
    expectBetween(authTime)
    expect(body.expires_in).toBe(3_600)
    expect(await flow.userinfo(body.access_token)).toBe(200)
  })

  test('an access token without offline access ends with the session; an issuer that is ahead may find no time left', async () => {
    const code = await flow.signIn(flow.browser(), client, person, { scope: 'openid' })
    await endsIn('sessions', left, 'user_id', person.id)
    const answer = await flow.redeem(client, code)
    if (difference > left) {
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant', reason: 'session_ended' } })
    } else {
      expect(answer.status).toBe(200)
      const ends = await issuer.sql(
        `SELECT round(extract(epoch FROM t.expires_at - s.expires_at))::integer AS apart FROM opaque_tokens t
         JOIN sessions s USING (user_id) WHERE user_id = $1`,
        [person.id],
      )
      expect(ends).toHaveLength(1)
      expect(Math.abs(ends[0]!['apart'] as number)).toBeLessThanOrEqual(1)
    }
  })
})
