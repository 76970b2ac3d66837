import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AccountVisitor, visitAccount } from '../../support/account-pages.ts'
import { parametersOf, signedOut } from '../../support/code-flow.ts'
import { type ExperiencePerson, startExperience, type TestExperience } from '../../support/experience.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { formOf, request } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { until } from '../../support/until.ts'

/**
 * Everything that ends what somebody has signed in to, done as it is done in life, and what a gateway lets through
 * then: the access tokens of what ended are refused within a second, and those of nothing else are. Opaque tokens and
 * refresh tokens end at once, at every instance.
 */

let experience: TestExperience
let gateway: TestGateway
let shop: TestApplication
/** Of a third party, so that there is a consent. */
let partner: TestApplication
beforeAll(async () => {
  const settings = { mfa: { factors: ['Totp' as const], policy: 'NoPrompt' as const } }
  experience = await startExperience({ instances: 2, settings })
  const { issuer, flow } = experience
  shop = await flow.createClient()
  partner = await flow.createClient({ isThirdParty: true })
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  const { id, secret } = await issuer.createMachine(issuer.managementResource, ['revocations'])
  gateway = await startTestGateway({
    config: () => ({ issuers: [{ issuer: issuer.issuer, client: { id, secret }, revocations: { mode: 'feed' } }] }),
  })
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }), 50_000)
})
afterAll(async () => {
  await gateway?.close()
  await experience?.close()
})

/** What somebody got: in which of two browsers, for whom, and whether with offline access. */
const all = [
  'laptop: shop',
  'laptop: shop, offline',
  'laptop: partner',
  'laptop: partner, offline',
  'phone: shop, offline',
]
const among = (...parts: string[]) => all.filter((name) => parts.some((part) => name.includes(part)))
const signedOutHere = ['laptop: shop', 'laptop: shop, offline', 'laptop: partner']

interface Got {
  /** For the API behind the gateway. */
  jwt: string
  idToken: string
  /** With offline access. */
  opaque?: string
  refreshToken?: string
}
interface Somebody {
  person: ExperiencePerson
  laptop: AccountVisitor
  phone: AccountVisitor
  /** By the names of `all`. */
  got: Record<string, Got>
}

const signIn = async (at: AccountVisitor, client: TestApplication, person: ExperiencePerson, isOffline: boolean) => {
  const { flow } = experience
  const scope = `openid read:orders${isOffline ? ' offline_access' : ''}`
  const prompt = isOffline ? 'consent' : undefined
  let page = await flow.ask(at.browser, client, { scope, resource: orders, prompt })
  const asksWho = page.forms.some(({ names }) => names.includes('password'))
  if (asksWho) page = await at.browser.submit(page, flow.credentials(person))
  if (page.location === undefined) page = await at.browser.submit(page, { choice: 'allow' }, { with: 'choice' })
  const form = isOffline ? {} : { resource: orders }
  const { status, body } = await flow.redeem(client, parametersOf(page)['code']!, 0, form)
  expect(status, JSON.stringify(body)).toBe(200)
  const { access_token: first, id_token: idToken, refresh_token: refreshToken } = body
  if (!isOffline) return { jwt: first, idToken }
  const refreshed = await flow.refresh(client, refreshToken, 0, { resource: orders })
  expect(refreshed.status, JSON.stringify(refreshed.body)).toBe(200)
  return { jwt: refreshed.body.access_token, idToken, opaque: first, refreshToken: refreshed.body.refresh_token }
}

const somebody = async (): Promise<Somebody> => {
  const { issuer } = experience
  const person = await experience.createPerson()
  await issuer.grantUser(person.id, orders, ['read:orders'])
  const [laptop, phone] = [visitAccount(issuer, person), visitAccount(issuer, person)]
  const got: Somebody['got'] = {}
  for (const name of all) {
    const [at, client] = [name.startsWith('laptop') ? laptop : phone, name.includes('shop') ? shop : partner]
    got[name] = await signIn(at, client, person, name.includes('offline'))
  }
  return { person, laptop, phone, got }
}

const api = async (method: string, path: string, body?: unknown) => {
  const answer = await experience.issuer.api(method, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body
}
/** A form of an account page, by somebody who has confirmed who they are. */
const change = async (at: AccountVisitor, path: string, values: Record<string, string>, field: string) => {
  await at.confirm()
  const page = await at.browser.submit(await at.open(path), values, { with: field })
  expect([page.status, page.url], page.text).toEqual([200, expect.stringContaining('done=')])
}
const sessionHere = async ({ person, got }: Somebody) => {
  const [row] = await experience.issuer.sql<{ session: string }>(
    `SELECT session_id AS session FROM authorizations WHERE user_id = $1 AND id = $2`,
    [person.id, sidOf(got['laptop: shop']!)],
  )
  return row!.session
}
const sidOf = ({ idToken }: Got): string => JSON.parse(Buffer.from(idToken.split('.')[1]!, 'base64url').toString()).sid
const endOf = (parameters: Record<string, string> = {}) =>
  `${experience.issuer.issuer}/session/end?${formOf(parameters)}`

const reset = async ({ person }: Somebody) => {
  const { browser } = visitAccount(experience.issuer, person)
  let page = await experience.flow.ask(browser, shop)
  page = await browser.submit(page, { choice: 'reset' }, { with: 'choice' })
  page = await browser.submit(page, { choice: 'code', address: person.email }, { with: 'choice' })
  page = await browser.submit(
    page,
    { choice: 'verify', code: await experience.codeTo(person.email) },
    { with: 'choice' },
  )
  page = await browser.submit(page, { choice: 'details', password: 'another good password' }, { with: 'choice' })
  expect(page.text).toContain('Your password was changed.')
}

const rows: [string, (one: Somebody) => Promise<unknown>, string[]][] = [
  [
    'signing out here',
    async ({ laptop, got }) => {
      const asked = { id_token_hint: got['laptop: shop']!.idToken, post_logout_redirect_uri: signedOut }
      expect((await laptop.browser.get(endOf(asked))).location).toBe(signedOut)
    },
    signedOutHere,
  ],
  [
    'somebody else who signs in here',
    async ({ laptop }) => {
      await experience.flow.signIn(laptop.browser, shop, await experience.flow.createPerson(), { prompt: 'login' })
    },
    signedOutHere,
  ],
  [
    'signing out everywhere',
    async ({ laptop }) => {
      const page = await laptop.browser.get(endOf())
      await laptop.browser.submit(page, { logout: 'yes', everywhere: 'yes' })
    },
    all,
  ],
  [
    'a session that the person ends elsewhere',
    ({ phone }) => change(phone, '/account/sessions', { choice: 'end_others' }, 'choice'),
    among('laptop'),
  ],
  [
    'a session that an administrator ends',
    async (one) => api('DELETE', `/users/${one.person.id}/sessions/${await sessionHere(one)}`),
    among('laptop'),
  ],
  [
    'a password that is set',
    ({ person }) => api('PATCH', `/users/${person.id}/password`, { password: 'another good password' }),
    all,
  ],
  ['a password that is reset', reset, all],
  [
    'a password that is changed, which spares where that is done',
    ({ phone }) =>
      change(phone, '/account/password', { choice: 'save', password: 'another good password' }, 'password'),
    among('laptop'),
  ],
  [
    'a factor that the person removes, which spares where that is done',
    async ({ person, phone }) => {
      await experience.addTotp(person)
      await change(phone, '/account/authenticator', { choice: 'remove' }, 'choice')
    },
    among('laptop'),
  ],
  [
    'a factor that an administrator removes',
    async ({ person }) => {
      await experience.addTotp(person)
      const [{ id }] = await api('GET', `/users/${person.id}/mfa-verifications`)
      await api('DELETE', `/users/${person.id}/mfa-verifications/${id}`)
    },
    all,
  ],
  ['suspension', ({ person }) => api('PATCH', `/users/${person.id}/is-suspended`, { isSuspended: true }), all],
  ['deletion', ({ person }) => api('DELETE', `/users/${person.id}`), all],
  [
    'a consent that the person takes back',
    ({ phone }) => change(phone, '/account/applications', { choice: 'end', id: partner.id }, 'id'),
    among('partner'),
  ],
  [
    'a consent that an administrator ends with a grant of it',
    ({ person, got }) => api('DELETE', `/users/${person.id}/grants/${sidOf(got['laptop: partner']!)}`),
    among('partner'),
  ],
  [
    'a refresh token that is used again',
    async ({ got }) => {
      const { refreshToken = '' } = got['laptop: shop, offline']!
      expect((await experience.flow.refresh(shop, refreshToken)).status).toBe(200)
      const sid = sidOf(got['laptop: shop, offline']!)
      await experience.issuer.sql(
        `UPDATE refresh_tokens SET rotated_at = rotated_at - interval '1 minute' WHERE authorization_id = $1`,
        [sid],
      )
      expect((await experience.flow.refresh(shop, refreshToken)).status).toBe(400)
    },
    ['laptop: shop, offline'],
  ],
  [
    'a refresh token that its application gives up',
    async ({ got }) => {
      const { refreshToken = '' } = got['laptop: shop, offline']!
      const body = formOf({ client_id: shop.id, token: refreshToken })
      const { status } = await request(`${experience.issuer.issuer}/token/revocation`, { method: 'POST', body })
      expect(status).toBe(200)
    },
    ['laptop: shop, offline'],
  ],
]

test.each(rows)('%s', async (_name, end, expected) => {
  const { flow } = experience
  const [ada, other] = [await somebody(), await somebody()]
  const opened = async ({ got }: Somebody) =>
    Promise.all(
      all.map(async (name) => [name, (await gateway.call('/orders/1', { token: got[name]!.jwt })).status] as const),
    )
  const statuses = (ended: readonly string[]) => all.map((name) => [name, ended.includes(name) ? 401 : 200])
  expect(await opened(ada)).toEqual(statuses([]))
  await end(ada)
  await until(async () => expect(await opened(ada)).toEqual(statuses(expected)), 1_000)
  expect(await opened(other)).toEqual(statuses([]))
  for (const name of among('offline')) {
    const { opaque, refreshToken } = ada.got[name]!
    const isOver = expected.includes(name)
    expect(await flow.userinfo(opaque!, 1), `${name}: an opaque token`).toBe(isOver ? 401 : 200)
    const client = name.includes('shop') ? shop : partner
    const refreshed = await flow.refresh(client, refreshToken!, 1)
    expect(refreshed.status, `${name}: a refresh token`).toBe(isOver ? 400 : 200)
  }
})
