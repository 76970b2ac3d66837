import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBrowser } from '../../support/browser.ts'
import {
  consoleCookie,
  consoleScript,
  consoleShell,
  startTestConsole,
  type TestConsole,
} from '../../support/console.ts'

let home: TestConsole

beforeAll(async () => {
  home = await startTestConsole()
})

afterAll(() => home.close())

const url = (path: string) => `${home.issuer.baseUrl}/console${path}`
const crossSite = { status: 403, body: { code: 'console.cross_site' } }

test.for([
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['a neighbour below the same domain', { 'sec-fetch-site': 'same-site' }],
  ['another site that says it is ours', { 'sec-fetch-site': 'cross-site', origin: 'own' }],
  ['an old browser on another site', { origin: 'https://evil.example' }],
  ['a page that hides where it is', { origin: 'null' }],
  ['nobody knows where', {}],
  ['a form of our own', { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' }],
  ['text of our own', { 'sec-fetch-site': 'same-origin', 'content-type': 'text/plain' }],
] as const)('a change that comes from %s is refused, with the cookie of an owner', async ([, sent]) => {
  const browser = await home.browserOf(await home.createMember('owner'))
  for (const path of ['/api/users', '/session/end']) {
    const { origin, ...headers } = { 'content-type': 'application/json', ...sent } as Record<string, string>
    const answer = await browser.send(url(path), {
      method: 'POST',
      headers: { ...headers, ...(origin && { origin: origin === 'own' ? home.issuer.baseUrl : origin }) },
      body: '{}',
    })
    expect([path, answer.status, JSON.parse(answer.text)]).toMatchObject([path, crossSite.status, crossSite.body])
  }
  expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
})

test('a browser without Sec-Fetch-Site is believed by its Origin', async () => {
  const browser = await home.browserOf(await home.createMember('owner'))
  const answer = await browser.send(url('/api/users'), {
    method: 'POST',
    headers: { origin: home.issuer.baseUrl, 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'by_origin' }),
  })
  expect(answer.status).toBe(200)
})

test('another site cannot read either, nor measure how long reading takes', async () => {
  const browser = await home.browserOf(await home.createMember('owner'))
  for (const site of ['cross-site', 'same-site'])
    for (const path of ['/api/users', '/session'])
      expect(await home.call(browser, 'GET', path, undefined, { headers: { 'sec-fetch-site': site } })).toMatchObject(
        crossSite,
      )
  const read = await home.call(browser, 'GET', '/api/users', undefined, {
    headers: { origin: 'https://evil.example' },
  })
  expect(read.headers.get('access-control-allow-origin')).toBeNull()
  expect(read.headers.get('cross-origin-resource-policy')).toBe('same-origin')
})

test('a page without the cookie gets nothing but the shell', async () => {
  const thief = createBrowser(home.issuer.baseUrl)
  expect((await thief.get(url('/users'))).text).toBe(consoleShell)
  for (const path of ['/session', '/api/users', '/api/openapi.json'])
    expect(await home.call(thief, 'GET', path)).toMatchObject({ status: 401, body: { code: 'console.signed_out' } })
  for (const value of ['x'.repeat(43), 'short', '', "' OR 1=1"]) {
    thief.cookies.set(consoleCookie, value)
    expect((await home.call(thief, 'GET', '/api/users')).status).toBe(401)
  }
})

test('of two cookies of one name neither counts', async () => {
  const browser = await home.browserOf(await home.createMember('owner'))
  const value = browser.cookies.get(consoleCookie)
  const answer = await home.call(createBrowser(home.issuer.baseUrl), 'GET', '/session', undefined, {
    headers: { cookie: `${consoleCookie}=${value}; ${consoleCookie}=${'x'.repeat(43)}` },
  })
  expect(answer.status).toBe(401)
})

test('nobody frames the console, and its pages load nothing from elsewhere and nothing inline', async () => {
  const { headers } = await createBrowser(home.issuer.baseUrl).get(url('/'))
  const policy = headers.get('content-security-policy')!
  for (const directive of [
    ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"],
    ...["base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"],
  ])
    expect(policy.split('; ')).toContain(directive)
  expect(policy).not.toMatch(/unsafe|\*|https?:/)
  expect(Object.fromEntries(headers)).toMatchObject({
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-cache',
  })
})

test('files are served by their names, compressed, for ever; nothing else of the folder is', async () => {
  const get = (path: string, encoding = 'identity') =>
    fetch(url(path), { headers: { 'accept-encoding': encoding, 'sec-fetch-site': 'same-origin' } })
  const plain = await get('/assets/main-1.js')
  expect(Object.fromEntries(plain.headers)).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
  })
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect(await plain.text()).toBe(consoleScript)
  const compressed = await get('/assets/main-1.js', 'gzip, br')
  expect(compressed.headers.get('content-encoding')).toBe('br')
  expect(await compressed.text()).toBe(consoleScript)
  expect((await get('/assets/main-1.js', 'br;q=0')).headers.get('content-encoding')).toBeNull()
  for (const path of [
    '/assets/../secret.txt',
    '/assets/%2e%2e/secret.txt',
    '/assets/..%2fsecret.txt',
    '/assets/secret.txt',
    '/assets/',
    '/assets/main-2.js',
  ])
    expect([path, (await (await get(path)).text()).includes('not served')]).toEqual([path, false])
  const shell = await get('/')
  const again = await fetch(url('/'), { headers: { 'if-none-match': shell.headers.get('etag')! } })
  expect(again.status).toBe(304)
})

test.for([
  'https://evil.example/console/',
  '//evil.example/console/',
  '/\\evil.example/console/',
  'javascript:alert(1)',
  '/console/..//evil.example',
  '/console/../oidc/session/end',
  '/oidc/auth',
  '/console/sign-in?return_to=/console/',
  '/console/session/end',
  '/consoles',
  'not a path',
])('signing in never leads to %s', async (target) => {
  const browser = home.flow.browser()
  const shell = await home.signIn(
    browser,
    await home.createMember('auditor'),
    `?return_to=${encodeURIComponent(target)}`,
  )
  expect(shell.url.replace(home.issuer.baseUrl, '')).toMatch(/^\/console\/(not%20a%20path)?$/)
})

/** Follows the sign-in up to where it leads back. */
const upToCallback = async (browser = home.flow.browser(), role: 'owner' | 'auditor' = 'auditor') => {
  const person = await home.createMember(role)
  const page = await browser.get(url('/sign-in?return_to=/console/users'))
  let visit = await browser.submit(page, home.flow.credentials(person), { follow: false })
  while (!visit.location!.startsWith(url('/callback'))) visit = await browser.send(visit.location!)
  return { browser, person, location: visit.location! }
}

test('an answer with a foreign state, in another browser, of another issuer or a second time opens nothing', async () => {
  const { browser, location } = await upToCallback()
  const changed = (name: string, value: string) => {
    const answer = new URL(location)
    answer.searchParams.set(name, value)
    return answer.href
  }
  const victim = createBrowser(home.issuer.baseUrl)
  // The attacker's own code: the victim would work in the attacker's account.
  for (const [who, address] of [
    [victim, location],
    [browser, changed('state', 'x'.repeat(43))],
    [browser, changed('state', '')],
  ] as const) {
    const page = await who.send(address)
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('not begun in this browser')])
    expect(who.cookies.has(consoleCookie)).toBe(false)
  }
  const foreign = await upToCallback()
  const issued = new URL(foreign.location)
  issued.searchParams.set('iss', 'https://evil.example/oidc')
  expect((await foreign.browser.send(issued.href)).status).toBe(400)

  expect((await browser.send(location)).location).toBe(url('/users'))
  expect((await browser.send(location)).status).toBe(400)
  expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
})

test('a code that another sign-in got is of no use with this one', async () => {
  const [mine, other] = [await upToCallback(), await upToCallback()]
  const mixed = new URL(mine.location)
  mixed.searchParams.set('code', new URL(other.location).searchParams.get('code')!)
  const page = await mine.browser.send(mixed.href)
  expect(page.status).toBe(403)
  expect(mine.browser.cookies.has(consoleCookie)).toBe(false)
})

test('two tabs sign in side by side', async () => {
  const person = await home.createMember('auditor')
  const browser = home.flow.browser()
  const tabs = [
    await browser.get(url('/sign-in?return_to=/console/one')),
    await browser.get(url('/sign-in?return_to=/console/two')),
  ]
  const landed = []
  for (const tab of tabs) landed.push((await browser.submit(tab, home.flow.credentials(person))).url)
  expect(landed).toEqual([url('/one'), url('/two')])
  expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
})

test('signing in begins a session of its own, and ends the one whose cookie was there before', async () => {
  const attacker = await home.browserOf(await home.createMember('auditor'))
  const planted = attacker.cookies.get(consoleCookie)!
  const victim = home.flow.browser()
  victim.cookies.set(consoleCookie, planted)
  const person = await home.createMember('owner')
  await home.signIn(victim, person)
  expect(victim.cookies.get(consoleCookie)).not.toBe(planted)
  expect((await home.call(victim, 'GET', '/session')).body.user.id).toBe(person.id)
  expect((await home.call(attacker, 'GET', '/session')).status).toBe(401)
})

test('sign-ins that nobody goes on with do not fill the browser with cookies', async () => {
  const browser = home.flow.browser()
  for (let count = 0; count < 12; count++) await browser.send(url('/sign-in'))
  const names = [...browser.cookies.keys()].filter((name) => name.includes('-sign-in-'))
  expect(names.length).toBeLessThanOrEqual(6)
})

test('who gives the sign-in up comes to a page that says so', async () => {
  const { browser, location } = await upToCallback()
  const answer = new URL(location)
  answer.searchParams.delete('code')
  answer.searchParams.set('error', 'access_denied')
  answer.searchParams.set('error_description', '<script>alert(1)</script>')
  const page = await browser.send(answer.href)
  expect([page.status, page.text]).toEqual([403, expect.stringContaining('You are not signed in to the console')])
  expect(page.text).not.toMatch(/<script|alert/)
})
