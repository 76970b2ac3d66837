import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import {
  errorPage,
  findAsset,
  formPostPage,
  type Page,
  type SendPageOptions,
  sendAsset,
  sendPage,
  signedOutPage,
  signInPage,
} from '../../../issuer/pages/index.ts'
import { everyPage } from './every-page.ts'

const releases: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const release of releases.splice(0)) await release()
})

const ask = async (listener: RequestListener, init: RequestInit = {}) => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releases.push(async () => void (await new Promise((resolve) => server.close(resolve).closeAllConnections())))
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, init)
}

const answerOf = (page: Page, options?: SendPageOptions, init?: RequestInit) =>
  ask((_request, response) => sendPage(response, 200, page, options), init)

const headersOf = (response: Response) => {
  const {
    date: _date,
    connection: _connection,
    'keep-alive': _keepAlive,
    ...headers
  } = Object.fromEntries(response.headers)
  return headers
}

const permissions = expect.stringMatching(
  /^publickey-credentials-get=\(self\), publickey-credentials-create=\(self\)(, [a-z-]+=\(\))+$/,
)
const signIn = { locale: 'en', client: { name: 'Acme' }, action: '/sign-in/i1', csrf: 'c', canCancel: true } as const

test('a page with a form is sent with exactly these headers', async () => {
  const page = signInPage(signIn)
  const response = await answerOf(page)
  expect(response.status).toBe(200)
  expect(headersOf(response)).toEqual({
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(page.content)),
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'content-security-policy':
      "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': permissions,
  })
  expect(await response.text()).toBe(page.content)
})

test('a page without a form lets none be sent, and tells nobody where a link was followed', async () => {
  const headers = headersOf(await answerOf(signedOutPage({ locale: 'en' })))
  expect(headers).toMatchObject({
    'content-security-policy':
      "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
  })
})

test('a caller adds headers and cookies but cannot weaken what every page has', async () => {
  const response = await answerOf(errorPage({ locale: 'en', problem: 'too_many_requests', requestId: 'r1' }), {
    headers: { 'Retry-After': '60', 'x-frame-options': 'SAMEORIGIN', 'Cache-Control': 'public' },
    setCookies: ['a=1; Path=/', 'b=2; Path=/'],
    secure: true,
  })
  expect(response.headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2; Path=/'])
  expect(headersOf(response)).toMatchObject({
    'retry-after': '60',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    'strict-transport-security': 'max-age=63072000',
  })
})

test('a HEAD request gets the headers only', async () => {
  const page = signedOutPage({ locale: 'en' })
  const response = await answerOf(page, {}, { method: 'HEAD' })
  expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(page.content)))
  expect(await response.text()).toBe('')
})

test.each(Object.entries(everyPage('en')))('%s may be framed by nobody and runs no script of others', (name, page) => {
  const policy = page.headers['Content-Security-Policy'].split('; ')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("style-src 'self'")
  expect(policy).toContain("base-uri 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  const script = page.content.includes('<script src="/assets/') ? "script-src 'self'" : "script-src 'none'"
  if (name !== 'formPost') expect(policy).toContain(script)
  const mayLeave = page.content.includes('<form')
  expect(policy.includes("form-action 'none'")).toBe(!mayLeave)
  expect(policy.some((directive) => directive.startsWith('form-action'))).toBe(!mayLeave)
  expect(page.content).not.toMatch(/ style=| on\w+=|<style/)
})

const imageSources = (logoUri: string) =>
  /img-src ([^;]*)/.exec(
    signInPage({ ...signIn, client: { name: 'Acme', logoUri } }).headers['Content-Security-Policy'],
  )?.[1]

test('the host of a logo is allowed, and nothing that a logo’s address smuggles in', () => {
  expect(imageSources('https://logos.example:8443/a.svg?b=c')).toBe("'self' https://logos.example:8443")
  expect(imageSources('http://localhost:3000/a.svg')).toBe("'self' http://localhost:3000")
  for (const logoUri of [
    'javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'data:image/svg+xml,<svg/>',
    'http://logos.example/a.svg',
    'https://*/a.svg',
    "https://a;script-src'unsafe-inline'/a.svg",
    'https://a,b/a.svg',
    'https://user:password@logos.example/a.svg',
    '/a.svg',
    '',
  ]) {
    expect(imageSources(logoUri), logoUri).toBe("'self'")
    expect(signInPage({ ...signIn, client: { name: 'Acme', logoUri } }).content).not.toContain('class="logo" src')
  }
})

test('the page that posts a response runs its own script only, escapes what it posts, and has a button besides', () => {
  const page = formPostPage({
    action: 'https://app.example/callback?a=b&c="',
    fields: { code: 'c1', state: '"><img src=x>', submit: 'x' },
  })
  const [script, ...others] = [...page.content.matchAll(/<script>([^<]*)<\/script>/g)].map(([, text]) => text!)
  const digest = createHash('sha256').update(script!).digest('base64')
  expect(others).toEqual([])
  expect(page.headers).toEqual({
    'Content-Security-Policy': `default-src 'none'; style-src 'self'; img-src 'self'; script-src 'sha256-${digest}'; base-uri 'none'; frame-ancestors 'none'`,
    'Referrer-Policy': 'no-referrer',
  })
  expect(page.content).toContain('<form method="post" action="https://app.example/callback?a=b&amp;c=&quot;">')
  expect(page.content).toContain('<input type="hidden" name="state" value="&quot;&gt;&lt;img src=x&gt;">')
  expect(page.content).toMatch(/<noscript>.*<button>/s)
})

test('the files of a page are found by its addresses, never change, and are found by no other', async () => {
  const { content } = signInPage(signIn)
  const paths = [...content.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!)
  expect(paths[0]).toMatch(/^\/assets\/pages\.[\da-f]{16}\.css$/)
  for (const path of paths) expect(findAsset(path)).toBeDefined()
  for (const path of [
    '/assets/pages.css',
    '/assets/',
    '/assets/pages.0000000000000000.css',
    '/assets/../x',
    '__proto__',
  ])
    expect(findAsset(path)).toBeUndefined()

  const response = await ask((_request, answer) => sendAsset(answer, findAsset(paths[0]!)!))
  expect(headersOf(response)).toMatchObject({
    'content-type': 'text/css; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
  })
  expect(await response.text()).not.toMatch(/@import|url\(|expression\(/)
})
