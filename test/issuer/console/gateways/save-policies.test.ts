import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Gateway } from '../../../../issuer/console/gateways/gateways.ts'
import { type BreakableLine, startBreakableLine } from '../../../support/breakable-line.ts'
import type { Browser } from '../../../support/browser.ts'
import type { Person } from '../../../support/code-flow.ts'
import { startTestConsole, type TestConsole } from '../../../support/console.ts'
import { ruleHeader, sha256, startPolicyFolder } from '../../../support/policy-folder.ts'

/** Rules that are saved at a gateway through the console leave a row in the audit trail, whatever came of it. */

const rules = (verdict: boolean) => `${ruleHeader}decision := {"allow": ${verdict}}\n`

let home: TestConsole
let own: Awaited<ReturnType<typeof startPolicyFolder>>
let line: BreakableLine
let person: Person
let owner: Browser

beforeAll(async () => {
  const asked: Gateway[] = []
  home = await startTestConsole({ consoleGateways: () => asked })
  const { issuer, baseUrl } = home.issuer
  const audience = `${baseUrl}/inspection`
  own = await startPolicyFolder(
    { 'decision.rego': rules(true) },
    {
      inspection: { audience, issuers: [issuer], savePolicies: true },
      members: (parts) => ({
        issuers: [{ issuer: parts.issuer.issuer }, { issuer }],
        routes: [{ id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' }],
      }),
    },
  )
  line = await startBreakableLine(own.gateway.inspectionUrl!)
  asked.push({ name: 'edge-1', url: line.url, audience })
  person = await home.createMember('owner')
  owner = await home.browserOf(person)
})
afterAll(async () => {
  await line?.close()
  await own?.close()
  await home?.close()
})
beforeEach(() => home.issuer.sql(`DELETE FROM logs WHERE key LIKE 'Console.%'`))

const save = (files: object, { browser = owner, path = '/gateways/edge-1/policies/files' } = {}) =>
  home.call(browser, 'PUT', path, { files })
/** The rows as an auditor reads them. */
const rows = async (key = 'Console.savePolicies') =>
  (await home.issuer.api('GET', `/logs?logKey=${key}`)).body.map(({ payload }: { payload: object }) => payload)
const payload = (particulars: object) => ({
  key: 'Console.savePolicies',
  result: 'Success',
  applicationId: 'surrogate-console',
  userId: person.id,
  ip: expect.any(String),
  userAgent: expect.any(String),
  person: { userId: person.id, sid: expect.any(String) },
  method: 'PUT',
  path: '/console/gateways/edge-1/policies/files',
  gateway: 'edge-1',
  ...particulars,
})

test('the row has who, which gateway, and digests of the files before and after, but no text', async () => {
  const before = sha256(await own.read('decision.rego'))
  const files = {
    'decision.rego': { text: rules(false), replaces: before },
    'new_test.rego': { text: 'package new_test\n', replaces: null },
  }
  expect((await save(files)).status).toBe(200)
  const made = { file: 'new_test.rego', before: null, after: sha256('package new_test\n') }
  expect(await rows()).toEqual([
    payload({ files: [{ file: 'decision.rego', before, after: sha256(await own.read('decision.rego')) }, made] }),
  ])
  const taken = { 'new_test.rego': { text: null, replaces: made.after } }
  expect((await save(taken)).status).toBe(200)
  const [newest] = await rows()
  expect(newest).toEqual(payload({ files: [{ file: 'new_test.rego', before: made.after, after: null }] }))
  expect(JSON.stringify(await rows())).not.toContain('package')
})

test('so does what the gateway refuses', async () => {
  const replaces = sha256(await own.read('decision.rego'))
  const refused = async (text: string, before: string, error: object) => {
    expect((await save({ 'decision.rego': { text, replaces: before } })).status).not.toBe(200)
    const files = [{ file: 'decision.rego', before, after: sha256(text) }]
    expect((await rows())[0]).toEqual(payload({ result: 'Error', error, files }))
  }
  await refused('package nonsense {', replaces, { code: 'rules_refused', status: 422 })
  await refused(rules(true), sha256('something else'), { code: 'rules_changed', status: 412 })
  // What cannot be read as files is recorded without them.
  expect((await save({ 'decision.rego': 'text' })).status).toBe(400)
  expect((await rows())[0]).toEqual(payload({ result: 'Error', error: { code: 'invalid_request', status: 400 } }))
  expect(await rows()).toHaveLength(3)
})

test('so does the attempt of somebody who may not, or has to sign in again first', async () => {
  const files = { 'decision.rego': { text: rules(true), replaces: sha256(await own.read('decision.rego')) } }
  for (const [role, code] of [
    ['auditor', 'insufficient_scope'],
    ['integrator', 'auth.forbidden'],
  ] as const) {
    const other = await home.createMember(role)
    expect(await save(files, { browser: await home.browserOf(other) })).toMatchObject({ status: 403, body: { code } })
    expect((await rows())[0]).toMatchObject({
      ...{ result: 'Error', userId: other.id, person: { userId: other.id } },
      ...{ gateway: 'edge-1', error: { code, status: 403 } },
    })
  }
  const late = await home.createMember('owner')
  const browser = await home.browserOf(late)
  await home.issuer.sql(
    `UPDATE authorizations SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`,
    [late.id],
  )
  expect((await save(files, { browser })).status).toBe(401)
  expect((await rows())[0]).toMatchObject({
    ...{ result: 'Error', userId: late.id, error: { code: 'console.step_up_required', status: 401 } },
  })
  expect(await own.read('decision.rego')).toBe(rules(false))
})

test('of a gateway that does not answer the row says so, with the digests that there may be now', async () => {
  const before = sha256(await own.read('decision.rego'))
  line.cut(true)
  const answer = await save({ 'decision.rego': { text: rules(true), replaces: before } })
  line.cut(false)
  expect(answer).toMatchObject({ status: 502, body: { code: 'console.gateway_unavailable' } })
  expect(await rows()).toEqual([
    payload({
      result: 'Error',
      error: { code: 'console.gateway_unavailable', status: 502, message: expect.stringMatching(/./) },
      files: [{ file: 'decision.rego', before, after: sha256(rules(true)) }],
    }),
  ])
})

test('reading and trying leave no row; another change would', async () => {
  await home.call(owner, 'GET', '/gateways/edge-1/policies')
  await home.call(owner, 'POST', '/gateways/edge-1/try', { files: { 'decision.rego': rules(true) } })
  expect((await save({}, { path: '/gateways/elsewhere/policies/files' })).status).toBe(404)
  expect(await rows()).toEqual([])
  expect((await save({}, { path: '/gateways/edge-1/nothing' })).status).toBe(404)
  expect(await rows('Console.changeGateway')).toMatchObject([
    { result: 'Error', path: '/console/gateways/edge-1/nothing', error: { code: 'not_found', status: 404 } },
  ])
})
