import { createHash } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ruleFolder } from '../../policies/rule-folder.ts'
import { amountRules, json, postHead, startBodyGateway } from '../../support/body-policies.ts'
import { sendRaw } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const post = (body: string | Buffer, headers: Record<string, string> = {}) => ({
  method: 'POST',
  body: body as string,
  headers: { ...json, ...headers },
})

describe('rules about a body', () => {
  test('decide by what was sent, every time, however often the same is asked', async () => {
    const { call, upstream } = await startBodyGateway()
    for (const [amount, status] of [
      [1, 200],
      [101, 403],
      [100, 200],
      [1, 200],
      [101, 403],
      [2, 200],
    ] as const) {
      const answer = await call('/payments', post(JSON.stringify({ amount })))
      expect([amount, answer.status]).toEqual([amount, status])
    }
    expect(upstream.seen.map(({ headers }) => headers['x-amount'])).toEqual(['1', '100', '1', '2'])
  })

  test('see none where none was sent, whatever the request says of its type', async () => {
    const { call, upstream } = await startBodyGateway()
    expect((await call('/payments')).status).toBe(200)
    expect((await call('/payments', { headers: json })).status).toBe(200)
    expect((await call('/payments', { method: 'POST', headers: json })).status).toBe(200)
    expect(upstream.seen.map(({ headers }) => headers['x-amount'])).toEqual(['none', 'none', 'none'])
  })

  test('see null, which is a body', async () => {
    const { call } = await startBodyGateway()
    expect((await call('/payments', post('null'))).status).toBe(403)
  })

  test('see none on a route that does not say so, and the body streams through', async () => {
    const { call, upstream } = await startBodyGateway({ route: { policyBody: undefined } })
    expect((await call('/payments', post('{"amount":101,"amount":1}'))).status).toBe(200)
    expect(upstream.seen[0]).toMatchObject({ headers: { 'x-amount': 'none' }, body: '{"amount":101,"amount":1}' })
  })

  test('decide in a thread of their own, too, and as a shadow', async () => {
    const candidate = await ruleFolder({ 'app.rego': amountRules.replace('<= 100', '<= 10') })
    const path = await ruleFolder({ 'app.rego': amountRules })
    const { call, metrics, lines } = await startBodyGateway({
      route: { isolation: 'worker' },
      config: () => ({ policies: { path, shadow: candidate } }),
    })
    expect((await call('/payments', post('{"amount":5}'))).status).toBe(200)
    expect((await call('/payments', post('{"amount":50,"card":"4111"}'))).status).toBe(200)
    expect((await call('/payments', post('{"amount":500}'))).status).toBe(403)
    await until(async () => {
      const { text } = await metrics.render()
      expect(text).toContain('surrogate_gateway_shadow_decisions_total{route="payments",outcome="same"} 2')
      expect(text).toContain('surrogate_gateway_shadow_decisions_total{route="payments",outcome="different"} 1')
    })
    expect(JSON.stringify(lines)).not.toContain('4111')
  })

  test('an input that is longer written out than it was sent is denied, and the reason logged', async () => {
    // 4 bytes as sent, 21 as JSON.
    const { call, lines, upstream } = await startBodyGateway()
    const body = `{"amount":1,"x":[${Array(13_000).fill('1e20').join()}]}`
    const answer = await call('/payments', post(body))
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'policy_error' }])
    expect(lines.find(({ msg }) => msg === 'a policy gave no decision')).toMatchObject({
      reason: 'the policy input is larger than 131072 bytes',
    })
    expect(upstream.seen).toEqual([])
  })

  test('see bodies as long as the route says, up to 256 kB', async () => {
    const { call } = await startBodyGateway({ route: { policyBody: { type: 'json', maxBytes: '256kB' } } })
    const body = (length: number) => `{"amount":1,"text":"${'é'.repeat((length - 22) / 2)}"}`
    expect(Buffer.byteLength(body(262_144))).toBe(262_144)
    expect((await call('/payments', post(body(262_144)))).status).toBe(200)
    const answer = await call('/payments', post(body(262_146)))
    expect([answer.status, await answer.json()]).toMatchObject([
      413,
      { code: 'content_too_large', detail: 'The request body may have 262144 bytes at most here.' },
    ])
  })

  test('bodySize holds beside maxBytes', async () => {
    const { call } = await startBodyGateway({ route: { bodySize: 12 } })
    expect((await call('/payments', post('{"amount":1}'))).status).toBe(200)
    expect((await call('/payments', post('{"amount":11}'))).status).toBe(413)
  })
})

describe('a body that was decided on', () => {
  test('is forwarded byte for byte with its length, in whatever pieces it came', async () => {
    const files = createTlsFiles()
    onTestFinished(() => files.remove())
    const gateway = await startBodyGateway({
      config: () => ({ listen: { port: 0, tls: { certificates: [files.pair('localhost')] } } }),
    })
    const { upstream, issuer } = gateway
    const client = await openHttp2(gateway.url, { ca: files.authority.certificate })
    onTestFinished(() => client.close())
    const body = Buffer.from(` { "\\u0061mount" : 1e0 ,\t"name":"Zoë\\u0000" , "fill": "${'é'.repeat(30_000)}"}\r\n`)
    const authorization = `Bearer ${await issuer.sign({ client_id: 'c1' })}`
    const head = { ':method': 'POST', ':path': '/payments', authorization, ...json }
    expect((await client.send(head, body)).status).toBe(200)
    expect((await client.send({ ...head, 'content-length': body.length }, body)).status).toBe(200)
    for (const { headers, body: received } of upstream.seen) {
      expect(headers).toMatchObject({ 'content-length': String(body.length), 'x-amount': '1' })
      expect(headers['transfer-encoding']).toBeUndefined()
      const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
      expect(digest(Buffer.from(received, 'latin1'))).toBe(digest(body))
    }
    expect(upstream.seen).toHaveLength(2)
    await until(async () => expect(await gateway.held()).toBe(0))
  })

  test('is sent once more where that is allowed, although it came in chunks', async () => {
    const gateway = await startBodyGateway({
      config: ({ url }) => ({
        upstreams: { api: { url, retries: { attempts: 2, on: [503], budget: '100%' } } },
      }),
    })
    const { upstream, issuer, port } = gateway
    const answerWell = upstream.answer
    upstream.answer = (_request, response) => {
      upstream.answer = answerWell
      response.writeHead(503).end()
    }
    const token = await issuer.sign({ client_id: 'c1' })
    const head = postHead(token, 'Transfer-Encoding: chunked', 'Connection: close').replace('POST', 'PUT')
    const received = await sendRaw(port, `${head}5\r\n{"amo\r\n7\r\nunt":1}\r\n0\r\n\r\n`)
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(upstream.seen.map(({ body }) => body)).toEqual(['{"amount":1}', '{"amount":1}'])
  })
})

describe('whoever asks without bodies', () => {
  test('is refused by a route whose rules must see them: an absent body is not an empty one', async () => {
    const { call, lines } = await startBodyGateway({
      config: () => ({ trustedProxies: ['127.0.0.1'], forwardAuth: { dialect: 'traefik' } }),
    })
    const asked = (method: string) => ({
      headers: {
        'x-forwarded-method': method,
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'a',
        'x-forwarded-uri': '/payments',
      },
    })
    for (const method of ['POST', 'GET']) {
      const answer = await call('/.surrogate/auth', asked(method))
      expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'body_unavailable' }])
    }
    expect(JSON.stringify(lines)).toContain('whoever asked did not bring the body')
    // What is no business of theirs is told first.
    expect((await call('/.surrogate/auth', { headers: { ...asked('POST').headers, authorization: '' } })).status).toBe(
      401,
    )
  })

  test('gets a denial where it understands nothing else', async () => {
    const { call } = await startBodyGateway({
      config: () => ({ trustedProxies: ['127.0.0.1'], forwardAuth: { dialect: 'nginx' } }),
    })
    const answer = await call('/.surrogate/auth', {
      headers: { 'x-original-method': 'POST', 'x-original-uri': '/payments', 'x-forwarded-proto': 'https' },
    })
    expect([answer.status, answer.headers.get('x-auth-reason')]).toEqual([403, 'body_unavailable'])
  })
})
