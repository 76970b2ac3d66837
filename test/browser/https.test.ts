import { request as ask } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { chromium } from '../support/chromium.ts'
import { type People, startPeople } from '../support/people.ts'

/** An issuer as in production: `BASE_URL` is https, and something before it ends TLS. */

describe.skipIf(!chromium)('over https, in Chromium', () => {
  let authority: ReturnType<typeof createAuthority>
  let front: Server
  let people: People
  beforeAll(async () => {
    authority = createAuthority()
    front = createServer(authority.issue('localhost'), (request, response) => {
      const { method, headers, url } = request
      const onwards = ask(`${people.issuer.url}${url}`, { method: method!, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      })
      onwards.on('error', () => response.destroy())
      request.pipe(onwards)
    })
    await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
    const baseUrl = `https://localhost:${(front.address() as AddressInfo).port}`
    people = await startPeople({ config: { baseUrl } })
  })
  afterAll(async () => {
    await people?.close()
    front?.closeAllConnections()
    await new Promise((resolve) => front?.close(resolve))
    authority?.remove()
  })

  test('cookies that no neighbour can set carry a person from sign-in to sign-out', async () => {
    const client = await people.createClient()
    const context = await people.browser.newContext({ ignoreHTTPSErrors: true })
    const page = await context.newPage()
    const first = await page.goto(client.authorizationUrl())
    expect(first!.headers()).toMatchObject({ 'strict-transport-security': expect.stringContaining('max-age=') })
    await people.signIn(page)
    await page.waitForURL((url) => url.origin === people.shop.url)
    const cookies = await context.cookies()
    expect(cookies.map(({ name }) => name).toSorted()).toEqual([
      '__Host-surrogate_browser',
      '__Host-surrogate_device',
      '__Host-surrogate_session',
    ])
    for (const cookie of cookies) expect(cookie).toMatchObject({ secure: true, httpOnly: true, sameSite: 'Lax' })

    // Signed in: straight back, without a page.
    await page.goto(client.authorizationUrl({ state: 'again' }))
    expect(page.url()).toContain('state=again')
    await page.goto(`${people.issuer.issuer}/session/end?client_id=${client.id}`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'You have successfully signed out' }).waitFor()
    expect((await context.cookies()).map(({ name }) => name)).not.toContain('__Host-surrogate_session')
    await context.close()
  })
})
