import { createBrowser } from '../harness/browser.ts'
import type { Page } from '../harness/comparison.ts'
import type { Site } from '../harness/sign-in-flow.ts'

const mostBytes = 15_000

/** What a browser loads before somebody can type: the page and its styles, as they are, without compression. */
export const measurePage = async (site: Site): Promise<Page> => {
  const browser = createBrowser(site)
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: site.client.id,
    redirect_uri: site.client.redirectUri,
    scope: site.scope,
    resource: site.resource,
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  })
  const { location = '' } = await browser.get(`${site.paths.authorize}?${query}`)
  const { pathname } = new URL(location, site.origin)
  const { status, body } = await browser.get(pathname)
  if (status !== 200 || !body.includes('type="password"')) throw new Error(`no page to sign in: ${status}\n${body}`)
  const named = body.matchAll(/<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"]+)"/gi)
  const files = new Set([...named].map(([, path = '']) => path))
  const bytes: { path: string; bytes: number }[] = [{ path: '/sign-in/…', bytes: Buffer.byteLength(body) }]
  for (const path of files) {
    const file = await browser.get(path)
    if (file.status !== 200) throw new Error(`${path}: ${file.status}`)
    bytes.push({ path, bytes: Buffer.byteLength(file.body) })
  }
  browser.close()
  const total = bytes.reduce((sum, file) => sum + file.bytes, 0)
  return {
    tables: [
      [
        ['the page to sign in, with what it loads', 'bytes', 'bar', ''],
        ...bytes.map((file) => [file.path, String(file.bytes), '', '']),
        ['together', String(total), `≤ ${mostBytes}`, total <= mostBytes ? 'met' : 'MISSED'],
      ],
    ],
    figures: bytes,
  }
}
