import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser } from '../../support/browser.ts'
import { startTestConsole, type TestConsole } from '../../support/console.ts'
import { openEventStream } from '../../support/event-stream.ts'
import { testRelayConfig } from '../../support/relay.ts'

/** Calls of the Management API that are made for the console, through its session. */

let home: TestConsole
beforeAll(async () => {
  home = await startTestConsole({ instances: 2, config: { webhookTargets: testRelayConfig } })
})
afterAll(() => home.close())

const listen = (browser: Browser, instance = 0) =>
  openEventStream(`${home.issuer.urls[instance]}/console/api/notices`, {
    cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    'sec-fetch-site': 'same-origin',
  })

test('of two administrators one changes what both have read, and the other is shown what it is now', async () => {
  const [one, other] = [
    await home.browserOf(await home.createMember('operator')),
    await home.browserOf(await home.createMember('owner')),
  ]
  const { body: role } = await home.call(one, 'POST', '/api/roles', { name: 'Shared', description: 'first' })
  const path = `/api/roles/${role.id}`
  const read = (await home.call(one, 'GET', path)).headers.get('etag')!
  expect((await home.call(other, 'GET', path)).headers.get('etag')).toBe(read)
  const change = (browser: Browser, description: string, instance: number) =>
    home.call(browser, 'PATCH', path, { description }, { headers: { 'if-match': read }, instance })
  const answers = await Promise.all([change(one, 'by one', 0), change(other, 'by the other', 1)])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412])
  const [winner, loser] = answers.toSorted((left, right) => left.status - right.status)
  expect(loser!.body).toMatchObject({ code: 'entity.version_mismatch', data: { current: winner!.body } })
})

test('notices come through the session, and end with it', async () => {
  const browser = await home.browserOf(await home.createMember('auditor'))
  const stream = await listen(browser, 1)
  expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  await stream.until(({ event }) => event === 'ready')
  const made = await home.issuer.api('POST', '/roles', { name: 'Told of', description: 'x' })
  await stream.until(({ data }) => data.entity?.id === made.body.id)
  expect((await home.call(browser, 'POST', '/session/end')).status).toBe(200)
  await stream.ended
})

test('a person sees the key of a hook by itself only, after a fresh proof, and that leaves one row', async () => {
  const owner = await home.createMember('owner')
  const browser = await home.browserOf(owner)
  const config = { url: 'http://127.0.0.1:8080/hook', headers: { 'x-team': 'crm' } }
  const { body: hook } = await home.call(browser, 'POST', '/api/hooks', { events: ['User.Created'], config })
  const path = `/api/hooks/${hook.id}`
  for (const [method, body] of [['GET'], ['PATCH', { name: 'Renamed' }]] as const) {
    const { body: shown } = await home.call(browser, method, path, body)
    expect(shown).toMatchObject({ id: hook.id, config })
    expect(shown).not.toHaveProperty('signingKey')
    expect(shown).not.toHaveProperty('webhookSecret')
  }
  const { signingKey, webhookSecret } = hook
  expect(await home.call(browser, 'GET', `${path}/signing-key`)).toMatchObject({
    status: 200,
    body: { signingKey, webhookSecret },
  })
  const rows = () =>
    home.issuer.sql(`SELECT user_id FROM logs WHERE key = 'Management.getHookSigningKey' AND user_id = $1`, [owner.id])
  expect(await rows()).toHaveLength(1)

  const back = `authenticated_at - interval '10 minutes'`
  await home.issuer.sql(`UPDATE authorizations SET authenticated_at = ${back} WHERE user_id = $1`, [owner.id])
  await home.issuer.sql(`UPDATE sessions SET authenticated_at = ${back} WHERE user_id = $1`, [owner.id])
  await home.issuer.sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [owner.id])
  const refused = await home.call(browser, 'GET', `${path}/signing-key`)
  expect(refused).toMatchObject({ status: 401, body: { code: 'console.step_up_required' } })
  expect(await rows()).toHaveLength(1)
  // What the deletion would end is told without.
  expect((await home.call(browser, 'DELETE', `${path}?dryRun=true`)).status).toBe(200)
  expect((await home.call(browser, 'DELETE', path)).status).toBe(401)
})
