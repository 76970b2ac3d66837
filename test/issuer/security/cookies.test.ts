import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type CodeFlow, createCodeFlow } from '../../support/code-flow.ts'
import { formOf, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { startSurrogateProcess } from '../../support/surrogate-process.ts'

/** Every `Set-Cookie` line of the pages, to the letter; only values are left out. */

const day = 86_400

describe.each([
  { over: 'https', baseUrl: 'https://login.example.test', prefix: '__Host-surrogate_', secure: '; Secure' },
  { over: 'http on this machine', baseUrl: 'http://localhost:3001', prefix: 'surrogate_', secure: '' },
])('over $over', ({ baseUrl, prefix, secure }) => {
  let issuer: TestIssuer
  let flow: CodeFlow
  let client: TestApplication
  beforeAll(async () => {
    issuer = await startTestIssuer({ config: { baseUrl } })
    flow = createCodeFlow(issuer)
    client = await flow.createClient()
  })
  afterAll(() => issuer.close())

  const attributes = `; Path=/; HttpOnly; SameSite=Lax${secure}`
  const line = (name: string, more = '') => `${prefix}${name}=…${attributes}${more}`
  const device = line('device', '; Max-Age=34560000')

  /** One browser; redirects are not followed. The issuer is asked where it listens, whatever its name is. */
  const browse = () => {
    const cookies = new Map<string, string>()
    const visit = async (url: string, init: RequestInit = {}) => {
      const { pathname, search } = new URL(url, baseUrl)
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const headers = { cookie, ...init.headers }
      const answer = await fetch(issuer.url + pathname + search, { redirect: 'manual', ...init, headers })
      const lines = answer.headers.getSetCookie()
      for (const one of lines) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(one)!
        cookies.set(name!, value!)
      }
      const location = answer.headers.get('location') ?? ''
      const shown = lines.map((one) => one.replace(/=[\w-]{43}(?=;)/, '=…'))
      return { text: await answer.text(), location, lines: shown }
    }
    const signIn = async (values: Record<string, string>) => {
      const person = await flow.createPerson()
      const asked = await visit(flow.authorizationUrl(client))
      const page = await visit(asked.location)
      const csrf = /name="csrf" value="([^"]*)"/.exec(page.text)![1]!
      const body = formOf({ csrf, ...flow.credentials(person), ...values })
      const back = await visit(asked.location, { method: 'POST', headers: { origin: baseUrl }, body })
      expect(back.location).toContain('code=')
      return { back, lines: [asked, page, back].flatMap((answer) => answer.lines) }
    }
    return { visit, signIn }
  }

  test('cookies that end with the browser', async () => {
    const { lines } = await browse().signIn({})
    expect(lines).toEqual([line('browser'), line('session'), device])
  })

  test('"keep me signed in", the cookie of another day, and signing out', async () => {
    const { visit, signIn } = browse()
    const { back, lines } = await signIn({ keep: 'yes' })
    expect(lines).toEqual([line('browser'), line('session', `; Max-Age=${14 * day}`), device])
    // A day later, as the database sees it.
    await issuer.sql(
      `UPDATE sessions SET rotated_at = now() - interval '25 hours', expires_at = now() + interval '1 day'`,
    )
    const again = await visit(flow.authorizationUrl(client, { prompt: 'none' }))
    expect(again.location).toContain('code=')
    expect(again.lines).toEqual([expect.stringMatching(/; Max-Age=\d+$/)])
    const [, left] = /; Max-Age=(\d+)$/.exec(again.lines[0]!)!
    expect(again.lines).toEqual([line('session', `; Max-Age=${left}`)])
    expect(Number(left)).toBeGreaterThan(day - 3_600)
    expect(Number(left)).toBeLessThanOrEqual(day)

    const { code } = Object.fromEntries(new URL(back.location).searchParams)
    const { body } = await flow.redeem(client, code!)
    const out = await visit(`/oidc/session/end?${formOf({ id_token_hint: body.id_token })}`)
    expect(out.lines).toEqual([`${prefix}session=${attributes}; Max-Age=0`])
  })
})

describe('a base URL that is plain http, on another host,', () => {
  test('does not start', async () => {
    const nothing = { ...inject('postgres'), database: 'not_there' }
    const issuer = await startSurrogateProcess('issuer', nothing, { BASE_URL: 'http://id.example.test' })
    expect(await issuer.exited).toEqual({ code: 2, signal: null })
    expect(issuer.output()).toMatch(/BASE_URL: must be https.*BASE_URL_ALLOW_HTTP=true/)
  })

  test('is warned of once, and never one of this machine', async () => {
    const warnings = async (baseUrl: string | undefined) => {
      const issuer = await startTestIssuer({ config: { baseUrl } })
      try {
        return issuer.logged().match(/"msg":"BASE_URL is plain http[^"]*"/g) ?? []
      } finally {
        await issuer.close()
      }
    }
    expect(await warnings('http://id.example.test')).toHaveLength(1)
    for (const baseUrl of [undefined, 'http://127.0.0.1:3001', 'https://id.example.test'])
      expect(await warnings(baseUrl)).toEqual([])
  })
})
