import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('what this tab has called stands in the log, and can be copied as curl', async () => {
    const visit = await app.signIn('/applications')
    const { page } = visit
    await page.getByRole('table', { name: 'Applications' }).or(page.getByText('No applications yet')).waitFor()
    await page.getByRole('link', { name: 'Developer' }).click()
    const calls = page.getByRole('list', { name: 'Calls of this tab' })
    await calls.getByText('GET /api/applications').waitFor()
    await page.getByRole('button', { name: 'Copy as curl: listApplications' }).click()
    await page.getByRole('link', { name: 'Tokens' }).click()
    const field = page.getByLabel('Token, or any text with tokens in it')
    await field.focus()
    await page.keyboard.press('Control+v')
    expect(await field.inputValue()).toBe(
      `curl '${app.home.issuer.baseUrl}/api/applications?page=1&page_size=20' \\\n  -H "Authorization: Bearer $TOKEN"`,
    )
    await visit.end()
  })

  test('a token is read and checked in the page, and nothing of it is sent', async () => {
    const { issuer } = app.home
    const token = await issuer.managementToken()
    const visit = await app.signIn('/developer/tokens')
    const { page } = visit
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    const field = page.getByLabel('Token, or any text with tokens in it')
    await field.fill(`curl -H 'Authorization: Bearer ${token}' https://api.example.com/`)
    await page.getByRole('heading', { name: 'Access token' }).waitFor()
    await page.getByText('signed by this issuer').waitFor()
    await visit.expectUsable()
    // One letter of the claims is another one now.
    const [header, payload, signature] = token.split('.')
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString())
    const changed = Buffer.from(
      JSON.stringify({ ...claims, exp: 1, act: { sub: 'support-1', act: { sub: 'robot-2' } } }),
    ).toString('base64url')
    await field.fill(`${header}.${changed}.${signature}`)
    await page.getByText('the signature is not of this text').waitFor()
    await page.getByText('It has expired.').waitFor()
    expect(await page.getByRole('list', { name: 'Who acts' }).allInnerTexts()).toEqual([
      [
        `${claims.sub} is the person or application that it is about`,
        'support-1 acts now',
        'robot-2 acted before that',
      ].join('\n'),
    ])
    await field.fill('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.')
    await page.getByText('not signed', { exact: true }).waitFor()
    await field.fill('what is this?')
    await page.getByText('There is no JSON Web Token in this.').waitFor()
    expect(sent.filter((text) => text.includes(payload!.slice(0, 40)) || text.includes('eyJ'))).toEqual([])
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })')).not.toContain('eyJ')
    await visit.end()
  })

  test('the reference leads to the documents, and says what an auditor may call', async () => {
    const visit = await app.signIn('/developer/reference', {
      roles: ['auditor'],
      viewport: { width: 320, height: 700 },
    })
    const { page } = visit
    const link = page.getByRole('link', { name: 'Management API' })
    expect(await link.getAttribute('href')).toBe(`${app.home.issuer.baseUrl}/api/docs`)
    await page.getByLabel('Search for an operation').fill('connector post')
    const row = page.getByRole('listitem').filter({ hasText: /createConnector\b/ })
    expect(await row.innerText()).toContain('you may not')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })
})
