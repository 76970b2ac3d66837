import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { textOf, visitAccount } from '../../../support/account-pages.ts'
import { headingOf } from '../../../support/browser.ts'
import { type CodeFlow, createCodeFlow, parametersOf } from '../../../support/code-flow.ts'
import { startTestGateway } from '../../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'

/** Who has access to an account, and how its owner ends that. */

let issuer: TestIssuer
let flow: CodeFlow
beforeAll(async () => {
  issuer = await startTestIssuer()
  flow = createCodeFlow(issuer)
})
afterAll(() => issuer.close())

const eventsOf = async (type: string, userId: string) =>
  (
    await issuer.sql<{ payload: Buffer }>(
      'SELECT payload FROM outbox WHERE type = $1 AND entity_id = $2 ORDER BY seq',
      [type, userId],
    )
  ).map(({ payload }) => JSON.parse(payload.toString()))

describe('devices', () => {
  test('one is ended, the others stay, and each end has its event; ending needs a proof of who one is', async () => {
    const person = await flow.createPerson()
    const client = await flow.createClient()
    const [phone, tablet] = [flow.browser(), flow.browser()]
    await flow.signIn(phone, client, person)
    await flow.signIn(tablet, client, person)
    const ada = visitAccount(issuer, person)
    const asked = await ada.open('/account/sessions')
    expect(textOf(asked)).toContain('To make changes here, please confirm first that it is you.')
    expect(asked.text).not.toContain('value="end"')

    await ada.confirm()
    const page = await ada.open('/account/sessions')
    const others = page.forms.filter(({ fields }) => fields['id'] !== undefined)
    expect(others).toHaveLength(2)
    expect(textOf(page)).toContain('Applications: Shop')
    const ended = await ada.browser.submit({ ...page, forms: [others[0]!] }, { choice: 'end' })
    expect(textOf(ended)).toContain('That device is signed out.')
    expect(ended.forms.filter(({ fields }) => fields['id'] !== undefined)).toHaveLength(1)
    const rows = await issuer.sql<{ id: string; end_reason: string | null; ended_by: string | null }>(
      'SELECT id, end_reason, ended_by FROM sessions WHERE user_id = $1 ORDER BY ended_at NULLS LAST',
      [person.id],
    )
    expect(rows.map(({ end_reason }) => end_reason)).toEqual(['ended_by_user', null, null])
    expect(rows[0]).toMatchObject({ id: others[0]!.fields['id'], ended_by: person.id })
    expect(await eventsOf('Session.Ended', person.id)).toMatchObject([
      { sessionId: rows[0]!.id, reason: 'ended_by_user', endedBy: person.id },
    ])
    const [log] = await issuer.sql<{ payload: object; application_id: string }>(
      `SELECT payload, application_id FROM logs WHERE key LIKE '%.endMySession' AND user_id = $1`,
      [person.id],
    )
    expect(log).toMatchObject({ application_id: 'account-center', payload: { fields: ['id', 'choice'] } })
  })

  test('all others end at once, with what applications got offline in them', async () => {
    const person = await flow.createPerson()
    const client = await flow.createClient()
    const other = flow.browser()
    const tokens = (await flow.redeem(client, await flow.signIn(other, client, person))).body
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/sessions')
    const done = await ada.browser.submit(page, { choice: 'end_others' }, { with: 'choice' })
    expect(textOf(done)).toContain('All other devices are signed out.')
    expect(textOf(done)).toContain('You are signed in nowhere else.')
    expect(await flow.refresh(client, tokens.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'session_ended' },
    })
    expect(await flow.userinfo(tokens.access_token)).toBe(401)
    expect(headingOf(await ada.browser.get('/account/sessions'))).toBe('Devices')
  })

  test("somebody else's is not there: neither shown nor ended", async () => {
    const [person, eve] = [await flow.createPerson(), await flow.createPerson()]
    const hers = visitAccount(issuer, eve)
    await hers.open('/account')
    const [session] = await issuer.sql<{ id: string }>('SELECT id FROM sessions WHERE user_id = $1', [eve.id])
    const another = flow.browser()
    await flow.signIn(another, await flow.createClient(), person)
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/sessions')
    expect(page.text).not.toContain(session!.id)
    const form = page.forms.find(({ fields }) => fields['id'] !== undefined)!
    await ada.browser.submit({ ...page, forms: [form] }, { choice: 'end', id: session!.id })
    expect(headingOf(await hers.browser.get('/account'))).toBe('Your account')
  })

  test('the ten minutes are over while the page is open: the person confirms again, and nothing has ended', async () => {
    const person = await flow.createPerson()
    await flow.signIn(flow.browser(), await flow.createClient(), person)
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/sessions')
    await issuer.sql(`UPDATE proofs SET expires_at = now() WHERE user_id = $1`, [person.id])
    const answer = await ada.browser.submit(page, { choice: 'end_others' }, { with: 'choice', follow: false })
    expect(answer.location).toBe(`${issuer.baseUrl}/account/confirm?next=%2Faccount%2Fsessions`)
    const rows = await issuer.sql('SELECT id FROM sessions WHERE user_id = $1 AND ended_at IS NULL', [person.id])
    expect(rows).toHaveLength(2)
  })

  test('what was opened in a device that is ended is refused at the gateway within a second', async () => {
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
    const person = await flow.createPerson()
    const client = await flow.createClient()
    await flow.signIn(flow.browser(), client, person)
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const [authorization] = await issuer.sql<{ id: string }>('SELECT id FROM authorizations WHERE user_id = $1', [
      person.id,
    ])
    const token = await gateway.issuer.sign({ scope: 'read:orders', sid: authorization!.id })
    const status = async () => (await gateway.call('/orders/1', { token })).status
    expect(await status()).toBe(200)
    const page = await ada.open('/account/sessions')
    await ada.browser.submit(page, { choice: 'end_others' }, { with: 'choice' })
    await until(async () => expect(await status()).toBe(401), 1_000)
  })
})

describe('applications', () => {
  const allow = async (person: { username: string; password: string; id: string }, scope = 'openid profile') => {
    const client = await flow.createClient({ isThirdParty: true })
    const browser = flow.browser()
    const page = await browser.submit(
      await flow.ask(browser, client, { scope: `${scope} offline_access` }),
      flow.credentials(person),
    )
    const { code } = parametersOf(await browser.submit(page, { choice: 'allow' }, { with: 'csrf' }))
    return { client, tokens: (await flow.redeem(client, code!)).body }
  }

  test('each is there once, in words; ending one ends its tokens and its consent, and it has to ask again', async () => {
    const person = await flow.createPerson()
    const { client, tokens } = await allow(person)
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/applications')
    expect(textOf(page)).toMatch(/Shop .*From another provider.*Keeps its access.*See your profile/)
    const ended = await ada.browser.submit(page, { choice: 'end' }, { with: 'id' })
    expect(textOf(ended)).toContain('The application has no access any more.')
    expect(textOf(ended)).toContain('No application has access to your account.')
    expect(await flow.refresh(client, tokens.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'consent_revoked' },
    })
    expect(await eventsOf('Consent.Revoked', person.id)).toMatchObject([
      { applicationId: client.id, revokedBy: person.id },
    ])
    const browser = flow.browser()
    const again = await browser.submit(await flow.ask(browser, client), flow.credentials(person))
    expect(headingOf(again)).toContain('would like access to your account')
  })

  test('a consent that is left without a sign-in is there too', async () => {
    const person = await flow.createPerson()
    await allow(person)
    await issuer.sql(`UPDATE authorizations SET ended_at = now(), end_reason = 'logout' WHERE user_id = $1`, [
      person.id,
    ])
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/applications')
    expect(textOf(page)).toContain('Shop')
    await ada.browser.submit(page, { choice: 'end' }, { with: 'id' })
    const left = await issuer.sql('SELECT id FROM consents WHERE user_id = $1 AND revoked_at IS NULL', [person.id])
    expect(left).toEqual([])
  })

  test('one of our own ends too, and nobody else loses anything by it', async () => {
    const [person, eve] = [await flow.createPerson(), await flow.createPerson()]
    const client = await flow.createClient()
    const hers = (await flow.redeem(client, await flow.signIn(flow.browser(), client, eve))).body
    const his = (await flow.redeem(client, await flow.signIn(flow.browser(), client, person))).body
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/applications')
    await ada.browser.submit(page, { choice: 'end' }, { with: 'id' })
    expect((await flow.refresh(client, his.refresh_token)).status).toBe(400)
    expect((await flow.refresh(client, hers.refresh_token)).status).toBe(200)
  })

  test('a name that is no name is escaped, cut and kept apart', async () => {
    const person = await flow.createPerson()
    const client = await flow.createClient()
    await issuer.sql('UPDATE applications SET name = $2 WHERE id = $1', [
      client.id,
      '<script>alert(1)</script>\u202Eevil',
    ])
    await flow.signIn(flow.browser(), client, person)
    const ada = visitAccount(issuer, person)
    for (const path of ['/account/applications', '/account/sessions']) {
      const page = await ada.open(path)
      expect(page.text).toContain('<bdi>&lt;script&gt;alert(1)&lt;/script&gt;evil</bdi>')
      expect(page.text).not.toContain('<script>')
    }
  })
})

describe('one’s data', () => {
  test('are a file without secrets, which the audit trail tells of', async () => {
    const person = await flow.createPerson()
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/data')
    const file = await ada.browser.submit(page, { choice: 'download' })
    expect(file.headers.get('content-disposition')).toBe('attachment; filename="account.json"')
    const data = JSON.parse(file.text)
    expect(data).toMatchObject({
      user: { id: person.id, username: person.username, hasPassword: true },
      factors: [],
      sessions: [{ accountId: person.id }],
      organizations: [],
      roles: [],
      personalAccessTokens: [],
      consents: [],
      impersonations: [],
    })
    expect(data.history).toContainEqual(expect.objectContaining({ what: 'Interaction.End', result: 'Success' }))
    expect(file.text).not.toMatch(/argon2|digest|secret/i)
    const logs = await issuer.sql(`SELECT id FROM logs WHERE key LIKE '%.exportMyAccount' AND user_id = $1`, [
      person.id,
    ])
    expect(logs).toHaveLength(1)
  })

  test('what others did to the account is told without where they were', async () => {
    const person = await flow.createPerson()
    await issuer.api('PATCH', `/users/${person.id}`, { name: 'Another name' })
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const { history } = JSON.parse(
      (await ada.browser.submit(await ada.open('/account/data'), { choice: 'download' })).text,
    )
    const theirs = history.filter(({ what }: { what: string }) => what.endsWith('.updateUser'))
    expect(theirs).toMatchObject([{ ip: null, userAgent: null }])
  })

  test('deleting the account asks first, ends everything, and says so', async () => {
    const person = await flow.createPerson()
    const client = await flow.createClient()
    const tokens = (await flow.redeem(client, await flow.signIn(flow.browser(), client, person))).body
    const ada = visitAccount(issuer, person)
    await ada.confirm()
    const page = await ada.open('/account/data')
    const unsure = await ada.browser.submit(page, { choice: 'delete' }, { with: 'sure' })
    expect(unsure.status).toBe(400)
    expect(textOf(unsure)).toContain('Confirm that you know that this cannot be undone')
    expect((await issuer.api('GET', `/users/${person.id}`)).status).toBe(200)

    const gone = await ada.browser.submit(unsure, { choice: 'delete', sure: 'yes' }, { with: 'sure' })
    expect(headingOf(gone)).toBe('Your account is deleted')
    expect([...ada.browser.cookies.keys()]).not.toContain('surrogate_session')
    expect((await issuer.api('GET', `/users/${person.id}`)).status).toBe(404)
    expect((await flow.refresh(client, tokens.refresh_token)).status).toBe(400)
    expect(await eventsOf('User.Deleted', person.id)).toMatchObject([{ data: { id: person.id } }])
    const feed = await issuer.sql(`SELECT seq FROM revocations WHERE kind = 'sub' AND value = $1`, [person.id])
    expect(feed).toHaveLength(1)
  })
})

test('what the person allowed is shown until somebody acts by it, and taken back without more ado', async () => {
  const person = await flow.createPerson()
  await issuer.sql(
    `INSERT INTO impersonation_requests (id, user_id, creator_id, context, number, reason, expires_at, decision, decided_at)
     VALUES ($1, $2, $3, '{}', '47', 'A wrong invoice', now() + interval '5 minutes', 'approved', now())`,
    [`r-${person.id}`, person.id, issuer.bootstrap.id],
  )
  const ada = visitAccount(issuer, person)
  const page = await ada.open('/account/impersonations')
  expect(textOf(page)).toContain('Allowed, not used yet')
  expect(textOf(page)).toContain('A wrong invoice')
  expect(page.text).toContain('Take back what you allowed under the number 47')
  const done = await ada.browser.submit(page, { choice: 'withdraw' }, { with: 'id' })
  expect(textOf(done)).toContain('You have taken it back.')
  expect(textOf(done)).not.toContain('A wrong invoice')
  expect((await issuer.api('GET', `/impersonation-requests/r-${person.id}`)).body.status).toBe('refused')

  // Another window has not noticed yet.
  const late = await ada.browser.submit(page, { choice: 'withdraw' }, { with: 'id' })
  expect(late.status).toBe(400)
  expect(textOf(late)).toContain('Nobody waits for this answer any more.')
})
