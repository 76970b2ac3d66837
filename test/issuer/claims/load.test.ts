import { afterAll, beforeAll, expect, test } from 'vitest'
import { putClaimsScript } from '../../support/claims-script.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** Scripts that do their worst, beside exchanges that mean well. */

let issuer: TestIssuer
let honest: TestApplication
let hostile: TestApplication
let resource: string

beforeAll(async () => {
  issuer = await startTestIssuer({
    config: { claims: { workers: 2, fetch: { hosts: [], allowedNetworks: [], allowHttp: false } } },
  })
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  honest = await issuer.createApplication()
  hostile = await issuer.createApplication()
  const body = `
    const { attack, expected } = context.grant.subjectTokenContext
    if (token.clientId === environmentVariables.HOSTILE) {
      if (attack === 0) for (;;);
      if (attack === 1) { const all = []; for (;;) all.push('x'.repeat(1e5) + all.length) }
      if (attack === 2) { const go = () => Promise.resolve().then(go); await go() }
      if (attack === 3) await new Promise(() => {})
      if (attack === 4) throw new Error('of ' + environmentVariables.SECRET)
      globalThis.left = context.user.id
    }
    return { expected, user: context.user.id, left: typeof globalThis.left, length: context.user.name.length }`
  const environmentVariables = { HOSTILE: hostile.id, SECRET: 'sekret-of-the-script' }
  await putClaimsScript(issuer, body, { environmentVariables })
}, 60_000)
afterAll(() => issuer?.close())

test('of 1 000 exchanges at once, a tenth hostile, every honest one gets its own claims', {
  timeout: 120_000,
}, async () => {
  const users = await Promise.all(Array.from({ length: 50 }, (_, n) => issuer.createUser({ name: 'x'.repeat(n + 1) })))
  const mint = async (n: number) => {
    const client = n % 10 === 0 ? hostile : honest
    const user = users[n % users.length]!
    const context = { expected: n, attack: (n / 10) % 6 }
    return { n, client, user, subjectToken: await issuer.subjectToken(user.id, { context }) }
  }
  const exchanges: Awaited<ReturnType<typeof mint>>[] = []
  for (let n = 0; n < 1000; n += 50)
    exchanges.push(...(await Promise.all(Array.from({ length: 50 }, (_, of) => mint(n + of)))))

  const before = process.memoryUsage().rss
  const answers = await Promise.all(
    exchanges.map(async (exchange) => ({
      ...exchange,
      answer: await issuer.exchange(exchange.client, exchange.subjectToken, { resource }),
    })),
  )
  for (const { n, client, user, answer } of answers) {
    if (client === honest) {
      expect(answer).toMatchObject({ status: 200 })
      const claims = await issuer.verify(answer.body.access_token, resource)
      const length = (n % users.length) + 1
      expect(claims).toMatchObject({ sub: user.id, user: user.id, expected: n, left: 'undefined', length })
    } else {
      // Refused for what it did, or because too many of its own are waiting; or it was no attack.
      expect([200, 400, 503]).toContain(answer.status)
      if ((n / 10) % 6 < 5) expect(answer.status).not.toBe(200)
    }
  }
  // In bytes. Hostile calls alone took 8 MB each.
  expect(process.memoryUsage().rss - before).toBeLessThan(400e6)
  expect(issuer.logged()).not.toContain('sekret-of-the-script')

  // What was refused was not used up.
  const refused = answers.find(({ answer }) => answer.status !== 200)!
  await issuer.api('DELETE', '/configs/jwt-customizer/access-token')
  expect(await issuer.exchange(honest, refused.subjectToken, { resource })).toMatchObject({ status: 200 })
})
