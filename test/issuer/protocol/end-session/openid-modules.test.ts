import { generateKeyPairSync, sign as signWith } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, request } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import type { TestSession } from '../../../support/sessions.ts'
import { formIn, type LogoutTest, location, returnUri, startLogoutTest, type Values } from './browser.ts'

/** What the OpenID Foundation's test plan for RP-Initiated Logout looks at, module by module. */

let logout: LogoutTest
let client: TestApplication
beforeAll(async () => {
  logout = await startLogoutTest()
  client = await logout.createClient()
})
afterAll(() => logout.close())

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The same claims, not signed. */
const unsigned = (token: string) => `${base64url({ alg: 'none' })}.${token.split('.')[1]}.`

/** The same claims, signed by somebody else. */
const signedElsewhere = (token: string) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const input = token.split('.', 2).join('.')
  const signature = signWith('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** The person does what the pages want; the last answer. */
const signOut = async (parameters: Values, session: TestSession): Promise<Answer> => {
  const first = await logout.get(parameters, session)
  const form = formIn(first)
  if (!form) return first
  const confirmed = await logout.submit(form, session)
  const next = location(confirmed)
  return next?.startsWith('/') ? request(logout.issuer.url + next) : confirmed
}

const returns = { status: 303, location: `${returnUri}?state=xyz` }
const signedOut = { status: 200, location: null, page: 'You have successfully signed out.' }
const refused = { status: 400, location: null, page: 'You are still signed in.' }

const modules: [name: string, parameters: (hint: string) => Values, result: object, isOver: boolean][] = [
  ['', (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: returnUri, state: 'xyz' }), returns, true],
  [
    '-bad-post-logout-redirect-uri',
    (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: 'https://evil.example/', state: 'xyz' }),
    refused,
    false,
  ],
  [
    '-modified-id-token-hint',
    (hint) => ({ id_token_hint: unsigned(hint), post_logout_redirect_uri: returnUri, state: 'xyz' }),
    refused,
    false,
  ],
  [
    '-no-id-token-hint',
    () => ({ post_logout_redirect_uri: returnUri, state: 'xyz' }),
    // No client, so nobody to be sent back to.
    signedOut,
    true,
  ],
  [
    '-query-added-to-post-logout-redirect-uri',
    (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: `${returnUri}?foo=bar`, state: 'xyz' }),
    refused,
    false,
  ],
  [
    '-bad-id-token-hint',
    (hint) => ({ id_token_hint: signedElsewhere(hint), post_logout_redirect_uri: returnUri, state: 'xyz' }),
    refused,
    false,
  ],
  ['-no-params', () => ({}), signedOut, true],
  ['-no-post-logout-redirect-uri', (hint) => ({ id_token_hint: hint, state: 'xyz' }), signedOut, true],
  ['-only-state', () => ({ state: 'xyz' }), signedOut, true],
  [
    '-no-state',
    (hint) => ({ id_token_hint: hint, post_logout_redirect_uri: returnUri }),
    { status: 303, location: returnUri },
    true,
  ],
]

test.each(modules)('oidcc-rp-initiated-logout%s', async (_name, parametersOf, result, isOver) => {
  const session = await logout.sessions.signIn()
  const sid = await logout.sessions.authorize(session, client)
  const answer = await signOut(parametersOf(logout.idToken(session, client, sid)), session)
  expect({ status: answer.status, location: location(answer) }).toMatchObject(
    'page' in result ? { status: (result as typeof refused).status, location: null } : result,
  )
  if ('page' in result) expect(answer.body).toContain(result.page)
  expect(await logout.sessions.isOver('sessions', session.id)).toBe(isOver)
  expect(await logout.sessions.isOver('authorizations', sid)).toBe(isOver)
})

test('oidcc-rp-initiated-logout-discovery-endpoint-verification', async () => {
  const { body } = await request(`${logout.issuer.url}/oidc/.well-known/openid-configuration`)
  expect(body.end_session_endpoint).toBe(`${logout.issuer.issuer}/session/end`)
})
