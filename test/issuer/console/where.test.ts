import { expect, onTestFinished, test } from 'vitest'
import { consoleClientId } from '../../../issuer/base/console-roles.ts'
import { loadIssuerConfig } from '../../../issuer/config.ts'
import { createBrowser } from '../../support/browser.ts'
import { consoleShell, startTestConsole } from '../../support/console.ts'
import { freePort } from '../../support/free-port.ts'
import { request, startTestIssuer } from '../../support/issuer.ts'

const started = async (options?: Parameters<typeof startTestConsole>[0]) => {
  const home = await startTestConsole(options)
  onTestFinished(home.close)
  return home
}

test('on a port of its own it is there alone, signs people in at the issuer, and has a cookie of its own', async () => {
  const port = await freePort()
  const home = await started({ config: { console: { isOn: true, port, url: undefined } } })
  const own = `http://localhost:${port}`
  expect((await request(`${home.issuer.url}/console/`)).status).toBe(404)
  expect((await request(`${own}/console/users`)).body).toBe(consoleShell)
  expect((await request(`${own}/`)).headers.get('location')).toBe('/console/')
  for (const path of ['/oidc/jwks', '/api/status', '/sign-in', '/account', '/consoles'])
    expect([path, (await request(own + path)).status]).toEqual([path, 404])

  const person = await home.createMember('auditor')
  // Ports share cookies, so one browser has them all.
  const [console, issuer] = [createBrowser(own), createBrowser(home.issuer.baseUrl)]
  const begun = await console.send(`${own}/console/sign-in?return_to=/console/users`)
  expect(begun.location).toMatch(new RegExp(`^${home.issuer.issuer}/auth\\?`))
  const page = await issuer.get(begun.location!)
  let back = await issuer.submit(page, home.flow.credentials(person), { follow: false })
  while (back.location?.startsWith(home.issuer.baseUrl)) back = await issuer.send(back.location)
  expect(back.location).toMatch(new RegExp(`^${own}/console/callback\\?`))
  const arrived = await console.send(back.location!)
  expect(arrived.location).toBe(`${own}/console/users`)
  expect([...console.cookies.keys()]).toEqual([`surrogate-console-${port}`])
  const headers = { 'sec-fetch-site': 'same-origin' }
  const session = await console.send(`${own}/console/session`, { headers })
  expect(JSON.parse(session.text)).toMatchObject({ user: { id: person.id }, baseUrl: home.issuer.baseUrl })
  expect((await console.send(`${own}/console/api/users`, { headers })).status).toBe(200)
  // The issuer's own origin is another site for it.
  const change = { method: 'POST', body: '{}' }
  const json = { 'content-type': 'application/json' }
  const foreign = await console.send(`${own}/console/session/end`, {
    ...change,
    headers: { ...json, origin: home.issuer.baseUrl },
  })
  expect(foreign.status).toBe(403)
})

test('off, there is none, and its application keeps what another instance has registered', async () => {
  const issuer = await startTestIssuer({ config: { console: { isOn: false, port: undefined, url: undefined } } })
  onTestFinished(issuer.close)
  for (const path of ['/console', '/console/', '/console/session', '/console/api/users'])
    expect([path, (await request(issuer.url + path)).status]).toEqual([path, 404])
  expect(issuer.instances.map(({ consoleUrl }) => consoleUrl)).toEqual([undefined])
})

test('over https its cookies have the prefix that no neighbour can set', async () => {
  const home = await started({ config: { baseUrl: 'https://id.example.test' } })
  const [row] = await home.issuer.sql<{ uris: string[] }>(
    `SELECT oidc_client_metadata->'redirectUris' AS uris FROM applications WHERE id = $1`,
    [consoleClientId],
  )
  expect(row!.uris).toEqual(['https://id.example.test/console/callback'])
  const begun = await fetch(`${home.issuer.url}/console/sign-in`, { redirect: 'manual' })
  expect(begun.headers.get('location')).toMatch(/^https:\/\/id\.example\.test\/oidc\/auth\?/)
  expect(begun.headers.getSetCookie()[0]).toMatch(
    /^__Host-surrogate-console-sign-in-[\w-]{16}=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/,
  )
  expect(begun.headers.get('strict-transport-security')).toBe('max-age=63072000')
})

test('without a build there is a page that says how to make one, and the API is served', async () => {
  const issuer = await startTestIssuer()
  onTestFinished(issuer.close)
  const page = await request(`${issuer.url}/console/users`)
  expect([page.status, page.body]).toEqual([503, expect.stringContaining('npm run build')])
  expect((await issuer.api('GET', '/users')).status).toBe(200)
})

test.for([
  [{}, { isOn: true, port: undefined, url: undefined }],
  [{ CONSOLE: 'off' }, { isOn: false, port: undefined, url: undefined }],
  [{ CONSOLE: '3009' }, { isOn: true, port: 3009, url: undefined }],
  [
    { CONSOLE: '3009', CONSOLE_URL: 'https://admin.example.test/' },
    { isOn: true, port: 3009, url: 'https://admin.example.test' },
  ],
] as const)('%j is read', ([environment, expected]) => {
  const key = Buffer.alloc(32).toString('base64')
  expect(loadIssuerConfig({ KEY_ENCRYPTION_KEY: key, ...environment }).console).toMatchObject(expected)
})

test.for([{ CONSOLE: 'on' }, { CONSOLE: '99999' }, { CONSOLE: '3009', CONSOLE_URL: 'https://a.test/admin' }])(
  '%j is refused',
  (environment) => {
    const key = Buffer.alloc(32).toString('base64')
    expect(() => loadIssuerConfig({ KEY_ENCRYPTION_KEY: key, ...environment })).toThrow(/CONSOLE/)
  },
)
