import { readFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { caddy, startCaddy } from '../support/caddy.ts'
import { documented, startForwardAuth } from '../support/forward-auth.ts'
import { nginx, startNginx } from '../support/nginx.ts'

/** What the page for operators says a proxy does about cookies of the issuer, since the gateway does not forward. */

/** The directives of a row, or of the sentence below the table. */
const directives = async (line: RegExp): Promise<string[]> => {
  const page = await readFile(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  const [text] = line.exec(page)!
  return [...text.matchAll(/`([^`]+)`/g)].map(([, directive]) => directive!).filter((one) => one.includes(' '))
}

const behindNginx = (added: readonly string[]) =>
  startForwardAuth('nginx', async ({ proxy, gateway, upstream }) => {
    const blocks = await documented('nginx', [
      ['listen 8080;', `listen 127.0.0.1:${proxy};`],
      ['server 127.0.0.1:3000;', `server 127.0.0.1:${gateway};`],
      ['server 127.0.0.1:3002;', `server 127.0.0.1:${upstream};`],
      ['proxy_pass http://orders;', `${added.join('\n')}\nproxy_pass http://orders;`],
    ])
    return startNginx(blocks, proxy)
  })

const behindCaddy = (added: readonly string[]) =>
  startForwardAuth('caddy', async ({ proxy, gateway, upstream }) => {
    const site = await documented('caddyfile', [
      ['api.example.test {', `http://127.0.0.1:${proxy} {`],
      ['10.0.0.2:3000', `127.0.0.1:${gateway}`],
      ['reverse_proxy 10.0.0.3:3002', `reverse_proxy 127.0.0.1:${upstream} {\n${added.join('\n')}\n}`],
    ])
    return startCaddy(site)
  })

/** What of a browser's cookies reaches the API, and what of its own the browser. */
const exchange = async ({ call, upstream, close }: Awaited<ReturnType<typeof startForwardAuth>>) => {
  onTestFinished(close)
  upstream.answer = (_request, response) =>
    void response.writeHead(200, { 'set-cookie': 'surrogate_session=evil', 'clear-site-data': '"cookies"' }).end()
  const { status, headers } = await call('/orders/1', { headers: { cookie: 'surrogate_session=s1; cart=c1; b=2' } })
  return {
    sent: [status, upstream.seen[0]!.headers['cookie']],
    received: [headers.get('set-cookie'), headers.get('clear-site-data')],
  }
}

const nothing = { sent: [200, undefined], received: [null, null] }

describe('cookies of the issuer', () => {
  test.skipIf(nginx === undefined)('nginx', async () => {
    const added = await directives(/^\| nginx \| `proxy_set_header Cookie.*$/m)
    expect(added).toHaveLength(3)
    expect(await exchange(await behindNginx(added))).toEqual(nothing)
  })

  test.skipIf(nginx === undefined)('nginx, which passes on one of the API', async () => {
    const added = await directives(/^In nginx a cookie that the API reads.*$/m)
    expect(await exchange(await behindNginx(added))).toMatchObject({ sent: [200, 'cart=c1'] })
  })

  test.skipIf(caddy === undefined)('Caddy', async () => {
    const added = await directives(/^\| Caddy \| in `reverse_proxy`.*$/m)
    expect(added).toHaveLength(3)
    expect(await exchange(await behindCaddy(added))).toEqual(nothing)
  })
})
