import type { Adapter } from 'oidc-provider'
import pg from 'pg'
import { expect, test } from 'vitest'
import { createPeerStore, peerSchema } from '../../../bench/peers/oidc-store.ts'
import { newId } from '../../../platform/ids.ts'
import { type Browser, createBrowser, type Visit } from '../../support/browser.ts'
import { authorizationUrlOf, callback, createCodeFlow, signedOut, verifier } from '../../support/code-flow.ts'
import { createTestDatabase } from '../../support/database.ts'
import { formOf, request, startTestIssuer } from '../../support/issuer.ts'
import { startReferenceProvider } from '../../support/oidc-provider-sign-in.ts'

/** The table of races in docs/signing-in.md, ours and oidc-provider's taken in the same way. It prints its figures. */

const parallel = 50
/** The table is of 10. */
const rounds = 3

/** A provider with one person and one public client. */
interface Target {
  /** Of its endpoints, by instance. */
  urls: readonly string[]
  clientId: string
  authorizationUrl: string
  signIn(browser: Browser, page: Visit): Promise<Visit>
  close(): Promise<void>
}

const figure = (counts: readonly number[]) => {
  const [least, most] = [Math.min(...counts), Math.max(...counts)]
  return least === most ? `${least}` : `${least}–${most}`
}

const measured = async ({ urls, clientId, authorizationUrl, signIn }: Target) => {
  const at = (n: number) => urls[n % urls.length]!
  const atOnce = <Result>(ask: (url: string) => Promise<Result>) =>
    Promise.all(Array.from({ length: parallel }, (_, n) => ask(at(n))))
  const token = (url: string, form: Record<string, string>) =>
    request(`${url}/oidc/token`, { method: 'POST', body: formOf({ client_id: clientId, ...form }) })
  const redeem = (url: string, code: string) =>
    token(url, { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: verifier })
  const refresh = (url: string, value: string) => token(url, { grant_type: 'refresh_token', refresh_token: value })
  const lives = async (accessToken: string) => {
    const headers = { authorization: `Bearer ${accessToken}` }
    return (await request(`${at(0)}/oidc/me`, { headers })).status === 200
  }
  const enter = async () => {
    const browser = createBrowser(at(0))
    const back = await signIn(browser, await browser.get(authorizationUrl))
    const code = back.location && new URL(back.location).searchParams.get('code')
    if (!code) throw new Error(`no code: ${back.status} ${back.location}\n${back.text}`)
    return { browser, code }
  }

  const figures: Record<string, number[]> = {}
  const note = (name: string, count: number) => {
    figures[name] = [...(figures[name] ?? []), count]
  }
  for (let round = 0; round < rounds; round++) {
    const { browser, code } = await enter()
    const redeemed = (await atOnce((url) => redeem(url, code))).filter(({ status }) => status === 200)
    note('code: answered with tokens', redeemed.length)
    const live = await Promise.all(redeemed.map(({ body }) => lives(body.access_token)))
    note('code: of those, tokens live afterwards', live.filter(Boolean).length)

    const { body: tokens } = await redeem(at(0), (await enter()).code)
    const answers = await atOnce((url) => refresh(url, tokens.refresh_token))
    const refreshed = answers.filter(({ status }) => status === 200)
    note('refresh: answered with tokens', refreshed.length)
    const next = [...new Set(refreshed.map(({ body }) => body.refresh_token as string))]
    note('refresh: different refresh tokens', next.length)
    const good = await Promise.all(refreshed.map(({ body }) => lives(body.access_token)))
    note('refresh: of those, access tokens live afterwards', good.filter(Boolean).length)

    const hint = { client_id: clientId, post_logout_redirect_uri: signedOut }
    const page = await browser.get(`${at(0)}/oidc/session/end?${formOf(hint)}`)
    const { action, fields } = page.forms[0]!
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const outs = await atOnce((url) =>
      request(action.replace(new URL(action).origin, url), {
        method: 'POST',
        headers: { cookie, origin: at(0) },
        body: formOf({ ...fields, logout: 'yes' }),
      }),
    )
    note('logout: led back', outs.filter(({ headers }) => headers.get('location')?.startsWith(signedOut)).length)
    note('logout: told of an error', outs.filter(({ status }) => status >= 400).length)
  }
  return Object.fromEntries(Object.entries(figures).map(([name, counts]) => [name, figure(counts)]))
}

const ours = async (): Promise<Target> => {
  const issuer = await startTestIssuer({ instances: 2 })
  const flow = createCodeFlow(issuer)
  const [client, person] = [await flow.createClient(), await flow.createPerson()]
  return {
    urls: [issuer.baseUrl, issuer.urls[1]!],
    clientId: client.id,
    authorizationUrl: flow.authorizationUrl(client),
    signIn: (browser, page) => browser.submit(page, flow.credentials(person)),
    close: issuer.close,
  }
}

/** Of one instance, on PostgreSQL. A careful adapter refuses to mark what is marked. */
const theirs = async ({ careful }: { careful: boolean }): Promise<Target> => {
  const db = await createTestDatabase({ schema: [] })
  const admin = new pg.Client(db.connection)
  await admin.connect()
  await admin.query(peerSchema)
  await admin.end()
  const store = createPeerStore(db.connection)
  const adapter = (model: string): Adapter => {
    const strict = store.adapter(model)
    return careful ? strict : { ...strict, consume: (id) => strict.consume(id).catch(() => {}) }
  }
  const clientId = newId()
  const provider = await startReferenceProvider({
    adapter,
    people: { ada: {} },
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: 'none',
        redirect_uris: [callback],
        post_logout_redirect_uris: [signedOut],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
  })
  return {
    urls: [provider.url],
    clientId,
    authorizationUrl: authorizationUrlOf(`${provider.url}/oidc`, clientId),
    async signIn(browser, page) {
      const next = await browser.submit(page, { login: 'ada' })
      return next.forms.length > 0 ? browser.submit(next) : next
    },
    async close() {
      await provider.close()
      await store.close()
      await db.close()
    },
  }
}

const figuresOf = async (start: () => Promise<Target>) => {
  const target = await start()
  try {
    return await measured(target)
  } finally {
    await target.close()
  }
}

test('of races that oidc-provider loses, none is lost here', { timeout: 300_000 }, async () => {
  const own = await figuresOf(ours)
  const plain = await figuresOf(() => theirs({ careful: false }))
  const careful = await figuresOf(() => theirs({ careful: true }))
  console.table(
    Object.fromEntries(
      Object.entries(own).map(([name, value]) => [name, { own: value, plain: plain[name], careful: careful[name] }]),
    ),
  )
  expect(own).toEqual({
    'code: answered with tokens': '1',
    'code: of those, tokens live afterwards': '1',
    'refresh: answered with tokens': '50',
    'refresh: different refresh tokens': '1',
    'refresh: of those, access tokens live afterwards': '50',
    'logout: led back': '50',
    'logout: told of an error': '0',
  })
})
