import { afterAll, beforeAll, expect, test } from 'vitest'
import { consoleRoles } from '../../../issuer/base/console-roles.ts'
import type { Browser } from '../../support/browser.ts'
import { startTestConsole, type TestConsole } from '../../support/console.ts'
import { type ManagementTest, startManagement } from '../../support/management.ts'

let home: TestConsole

beforeAll(async () => {
  home = await startTestConsole()
})

afterAll(() => home.close())

const needsFresh = {
  status: 401,
  body: { code: 'console.step_up_required', data: { maxAge: 300 } },
}

/** As if the person had signed in so many minutes ago. */
const age = async (userId: string, minutes: number) => {
  const back = `authenticated_at - $2 * interval '1 minute'`
  await home.issuer.sql(`UPDATE authorizations SET authenticated_at = ${back} WHERE user_id = $1`, [userId, minutes])
  await home.issuer.sql(`UPDATE sessions SET authenticated_at = ${back} WHERE user_id = $1`, [userId, minutes])
  // The next call gets a token that says so.
  await home.issuer.sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [userId])
}

const ownerOfLongAgo = async () => {
  const owner = await home.createMember('owner')
  const browser = await home.browserOf(owner)
  await age(owner.id, 10)
  return { owner, browser }
}

const rotate = (browser: Browser) => home.call(browser, 'POST', '/api/configs/oidc/private-keys/rotate', {})

test('what needs a fresh proof is told so, until the person has signed in again', async () => {
  const { owner, browser } = await ownerOfLongAgo()
  const refused = await rotate(browser)
  expect(refused).toMatchObject(needsFresh)
  expect(refused.headers.get('www-authenticate')).toBe('Bearer error="insufficient_user_authentication", max_age=300')
  expect((await home.call(browser, 'GET', '/api/users')).status).toBe(200)
  const before = (await home.call(browser, 'GET', '/session')).body.authTime

  const page = await browser.get(`${home.issuer.baseUrl}/console/sign-in?step_up=true&return_to=/console/keys`)
  expect(page.forms.length).toBeGreaterThan(0)
  const shell = await browser.submit(page, home.flow.credentials(owner))
  expect(shell.url).toBe(`${home.issuer.baseUrl}/console/keys`)
  expect((await home.call(browser, 'GET', '/session')).body.authTime).toBeGreaterThan(before)
  expect((await rotate(browser)).status).toBe(200)
  // Five minutes, and not a minute more.
  await age(owner.id, 4)
  expect((await rotate(browser)).status).not.toBe(401)
  await age(owner.id, 2)
  expect(await rotate(browser)).toMatchObject(needsFresh)
})

test('signing in without stepping up, in a browser that is signed in, is no fresh proof', async () => {
  const { browser } = await ownerOfLongAgo()
  const shell = await browser.get(`${home.issuer.baseUrl}/console/sign-in`)
  expect(shell.forms).toEqual([])
  expect(await rotate(browser)).toMatchObject(needsFresh)
})

test('machines are unaffected', async () => {
  expect((await home.issuer.api('POST', '/configs/oidc/private-keys/rotate', {})).status).toBe(200)
})

test('who may not do it at all is told that, and not to sign in again', async () => {
  const auditor = await home.createMember('auditor')
  const browser = await home.browserOf(auditor)
  await age(auditor.id, 10)
  expect(await rotate(browser)).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
})

test('giving and taking permissions of the Management API needs a fresh proof, other roles do not', async () => {
  const { browser } = await ownerOfLongAgo()
  const person = await home.flow.createPerson()
  const { body: role } = await home.issuer.api('POST', '/roles', { name: 'Reader of theirs', description: 'x' })
  const give = (roleId: string) => home.call(browser, 'POST', `/api/users/${person.id}/roles`, { roleIds: [roleId] })
  expect((await give(role.id)).status).toBe(201)
  expect(await give(consoleRoles.auditor.id)).toMatchObject(needsFresh)
  await home.giveRole(person.id, 'auditor')
  expect(await home.call(browser, 'DELETE', `/api/users/${person.id}/roles/${consoleRoles.auditor.id}`)).toMatchObject(
    needsFresh,
  )
  // And so does changing somebody who holds them, or a machine.
  expect(await home.call(browser, 'PATCH', `/api/users/${person.id}`, { name: 'Other' })).toMatchObject(needsFresh)
  const machine = `/api/applications/${home.issuer.bootstrap.id}`
  expect(await home.call(browser, 'POST', `${machine}/secrets`, { name: 'mine' })).toMatchObject(needsFresh)
  expect(await home.call(browser, 'PATCH', machine, { name: 'Other' })).toMatchObject(needsFresh)
})

test('a person who looks at a secret leaves a row; one who is refused sees nothing', async () => {
  const script = {
    script: 'const getCustomJwtClaims = async () => ({})',
    environmentVariables: { KEY: 'hidden value' },
  }
  expect((await home.issuer.api('PUT', '/configs/jwt-customizer/access-token', script)).status).toBe(201)
  const owner = await home.createMember('owner')
  const browser = await home.browserOf(owner)
  const rows = () =>
    home.issuer.sql<{ key: string }>(
      `SELECT key FROM logs WHERE user_id = $1 AND key IN ('Management.getClaimsScript', 'Management.listUsers') ORDER BY key`,
      [owner.id],
    )
  const look = () => home.call(browser, 'GET', '/api/configs/jwt-customizer/access-token')
  expect(await look()).toMatchObject({ status: 200, body: script })
  expect((await home.call(browser, 'GET', '/api/users?includePasswordHash=true')).status).toBe(200)
  expect(await rows()).toEqual([{ key: 'Management.getClaimsScript' }, { key: 'Management.listUsers' }])

  await age(owner.id, 10)
  const refused = [await look(), await home.call(browser, 'GET', '/api/users?includePasswordHash=true')]
  for (const answer of refused) expect(answer).toMatchObject(needsFresh)
  expect(JSON.stringify(refused)).not.toContain('hidden value')
  expect(await rows()).toHaveLength(2)
})

test('these are all that need one', async () => {
  const api: ManagementTest = await startManagement()
  const names = api.routes.filter(({ freshProof }) => freshProof).map(({ operationId }) => operationId)
  await api.close()
  expect(names.toSorted()).toEqual([
    ...['createApplicationSecret', 'createOneTimeToken', 'createPersonalAccessToken', 'createSubjectToken'],
    ...['createUserMfaVerification', 'deleteApplication', 'deleteApplicationSecret', 'deleteClaimsScript'],
    ...['deleteConnector', 'deleteCookieKey', 'deleteHook', 'deleteIdTokenKey', 'deleteOrganization'],
    ...['deleteOrganizationRole', 'deleteOrganizationScope', 'deleteResource', 'deleteRole', 'deleteScope'],
    ...['deleteSigningKey', 'deleteSsoConnector', 'deleteUser', 'getClaimsScript', 'getHookSigningKey'],
    ...['listClaimsScripts'],
    ...['purgeHookDeadLetters', 'putClaimsScript', 'replaceHookSigningKey', 'rotateIdTokenKeys'],
    ...['rotateSigningKeys', 'testClaimsScript', 'updateClaimsScript', 'updateUserPassword'],
  ])
})
