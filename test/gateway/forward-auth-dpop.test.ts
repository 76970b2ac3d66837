import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { caddy, startCaddy } from '../support/caddy.ts'
import { newDpopClient } from '../support/dpop.ts'
import { documented, startForwardAuth } from '../support/forward-auth.ts'
import { nginx, startNginx } from '../support/nginx.ts'

/** DPoP through real proxies that ask about every request, with the lines of docs/dpop.md. */

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const linesForNginx = async () => {
  const page = await readFile(new URL('../../docs/dpop.md', import.meta.url), 'utf8')
  return /```nginx\n([\s\S]*?)```/.exec(page)![1]!
}

const programs = {
  nginx: async () => {
    const lines = await linesForNginx()
    return startForwardAuth('nginx', async ({ proxy, gateway, upstream }) =>
      startNginx(
        await documented('nginx', [
          ['listen 8080;', `listen 127.0.0.1:${proxy};`],
          ['server 127.0.0.1:3000;', `server 127.0.0.1:${gateway};`],
          ['server 127.0.0.1:3002;', `server 127.0.0.1:${upstream};`],
          ['auth_request /.surrogate/auth;', `auth_request /.surrogate/auth;\n${lines}`],
        ]),
        proxy,
      ),
    )
  },
  caddy: () =>
    startForwardAuth('caddy', async ({ proxy, gateway, upstream }) =>
      startCaddy(
        await documented('caddyfile', [
          ['api.example.test {', `http://127.0.0.1:${proxy} {`],
          ['10.0.0.2:3000', `127.0.0.1:${gateway}`],
          ['10.0.0.3:3002', `127.0.0.1:${upstream}`],
        ]),
      ),
    ),
}

describe.each(['nginx', 'caddy'] as const)('%s', (name) => {
  test.skipIf({ nginx, caddy }[name] === undefined)(
    'a client gets challenge and nonce, and its proof is good once',
    async () => {
      const parts = await programs[name]()
      cleanup.push(parts.close)
      const client = await newDpopClient()
      const token = await parts.gateway.issuer.sign({ cnf: client.cnf })
      const url = `${parts.url}/bound`
      const refused = await fetch(url, { headers: await client.fields({ url, token }) })
      expect(refused.status).toBe(401)
      expect(refused.headers.get('www-authenticate')).toMatch(/^DPoP error="use_dpop_nonce"/)
      const nonce = refused.headers.get('dpop-nonce') ?? undefined
      expect(nonce).toMatch(/^[\w-]{43}$/)

      const fields = await client.fields({ url, token, nonce })
      const allowed = await fetch(`${url}?page=2`, { headers: fields })
      expect([allowed.status, allowed.headers.get('dpop-nonce')]).toEqual([200, null])
      expect(parts.upstream.seen).toHaveLength(1)
      expect(parts.upstream.seen[0]!.headers).toMatchObject({ ...fields, 'x-auth-sub': 'u1' })
      const again = await fetch(url, { headers: fields })
      expect([again.status, again.headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringMatching(/^DPoP error="invalid_dpop_proof"/),
      ])
      expect((await fetch(url, { method: 'POST', headers: await client.fields({ url, token, nonce }) })).status).toBe(
        401,
      )
    },
  )
})
