import { afterAll, beforeAll, expect, test } from 'vitest'
import { startExperience, type TestExperience } from '../../support/experience.ts'

/** `signInPages`: where browsers are sent, and whose pages may call. */

let experience: TestExperience
const pages = 'http://localhost:4000/welcome?brand=blue'
const others = 'http://127.0.0.1:4000/'

beforeAll(async () => {
  experience = await startExperience({ settings: { signInPages: pages } })
})
afterAll(() => experience.close())

test('a browser is sent there, and told what it is about', async () => {
  const { begun } = await experience.pages({ parameters: { first_screen: 'register' } })
  expect(begun.status).toBe(303)
  const { origin, pathname, searchParams } = new URL(begun.location!)
  expect(origin + pathname).toBe('http://localhost:4000/welcome')
  expect(Object.fromEntries(searchParams)).toEqual({
    brand: 'blue',
    interaction: expect.stringMatching(/^[0-9a-z]{21}$/),
    app_id: experience.client.id,
    first_screen: 'register',
  })
})

test('its page may call, with cookies, for its application alone; the pages of another one may not', async () => {
  const client = await experience.flow.createClient()
  await experience.issuer.sql('INSERT INTO application_sign_in_experiences (application_id, value) VALUES ($1, $2)', [
    client.id,
    JSON.stringify({ signInPages: others }),
  ])
  const { begun, browser } = await experience.pages()
  const interaction = new URL(begun.location!).searchParams.get('interaction')!
  const call = (origin: string, method = 'GET') =>
    browser.send(`${experience.issuer.url}/api/experience/interaction`, {
      method,
      headers: { origin, 'surrogate-interaction': interaction, 'sec-fetch-site': 'same-site' },
    })
  const allowed = await call('http://localhost:4000')
  expect(allowed.status).toBe(200)
  expect(allowed.headers.get('access-control-allow-origin')).toBe('http://localhost:4000')
  expect(allowed.headers.get('access-control-allow-credentials')).toBe('true')
  const refused = await call('http://127.0.0.1:4000')
  expect(refused.status).toBe(403)
  expect(refused.headers.get('access-control-allow-origin')).toBe(null)

  const preflight = await call('http://localhost:4000', 'OPTIONS')
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-headers')).toBe(
    'content-type, surrogate-interaction, logto-app-id',
  )
  expect((await call('http://evil.example', 'OPTIONS')).headers.get('access-control-allow-origin')).toBe(null)
})

test('what is ours to ask is asked by us: consent of somebody with a session', async () => {
  const person = await experience.createPerson()
  const first = await experience.pages()
  const interaction = (location: string | undefined) => new URL(location!).searchParams.get('interaction')!
  const headers = { 'surrogate-interaction': interaction(first.begun.location) }
  const asked = { identifier: { type: 'username', value: person.username }, password: person.password }
  const proven = await first.post('/verification/password', asked, { headers })
  await first.post('/identification', proven.body, { headers })
  const submitted = await first.post('/submit', { keepSignedIn: true }, { headers })
  expect(submitted.status).toBe(200)
  expect(submitted.headers.getSetCookie().join()).toContain('Max-Age')
  const third = await experience.flow.createClient({ type: 'SPA', isThirdParty: true })
  const { begun } = await experience.pages({ browser: first.browser, client: third })
  expect(begun.location).toContain('/sign-in/')
})

test('without an interaction it is an answer that the page can read', async () => {
  const answer = await fetch(`${experience.issuer.url}/api/experience/interaction`, {
    headers: { origin: 'http://localhost:4000' },
  })
  expect(answer.status).toBe(404)
  expect(answer.headers.get('access-control-allow-origin')).toBe('http://localhost:4000')
})
