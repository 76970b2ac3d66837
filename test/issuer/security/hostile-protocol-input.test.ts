import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { assertionType, type KeyClient, registerKeyClient } from '../../support/client-keys.ts'
import {
  type Answer,
  accessTokenType,
  basic,
  request,
  startTestIssuer,
  type TestIssuer,
  tokenExchange,
} from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { loudLines } from '../../support/log-lines.ts'

/**
 * Whatever stands in a parameter, a header or a claim, the fault is the caller's: 4xx in the form of the protocol, and
 * nothing in the error log.
 */

let issuer: TestIssuer
let client: TestApplication
let signer: KeyClient
let resource: string
beforeAll(async () => {
  issuer = await startTestIssuer({ config: { rateLimits: { failedAuthentications: 1_000_000 } } })
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  client = await issuer.createApplication({ type: 'MachineToMachine' })
  signer = await registerKeyClient(issuer)
})
afterAll(() => issuer.close())

const values: Record<string, string> = {
  nothing: '',
  'a space': ' ',
  'a NUL': 'a\0b',
  'a line break': 'a\r\nset-cookie: x=1',
  'control characters': '\u0001\u001f\u007f\u0085\u2028',
  'a byte order mark': '\ufeffread:orders',
  'an emoji': '🙂',
  'right-to-left text': '\u202eabc',
  'a combining sequence': 'e\u0301'.repeat(100),
  quotes: `'";--\\`,
  SQL: `' OR 1=1; DROP TABLE users; --`,
  'a name every object has': '__proto__',
  'a function every object has': 'toString',
  markup: '<script>alert(1)</script>',
  'a template': '${7*7}{{7*7}}',
  JSON: '{"a":[1,{"b":null}]}',
  'a number': '1e309',
  'percent-escapes': '%00%ff%zz',
  'a path': '../../etc/passwd',
  'a long text': 'x'.repeat(20_000),
  'many words': 'read:orders '.repeat(1_000),
  'many different words': Array.from({ length: 2_000 }, (_, n) => `s${n}`).join(' '),
  dots: '.'.repeat(5_000),
  'a JWT of nothing': 'e30.e30.e30',
  'deep JSON in a JWT': `${Buffer.from('{"alg":"ES256"}').toString('base64url')}.${Buffer.from('['.repeat(9_000)).toString('base64url')}.AA`,
}

const parameters = [
  ...['grant_type', 'scope', 'resource', 'client_id', 'client_secret', 'client_assertion', 'client_assertion_type'],
  ...['subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'requested_token_type', 'audience'],
  ...['organization_id', 'token', 'token_type_hint', 'x'],
]

const expectProtocolAnswer = ({ status, body, headers }: Answer) => {
  expect(status).toBeLessThan(500)
  expect(headers.get('set-cookie')).toBeNull()
  expect(headers.get('content-type')).toContain('application/json')
  if (status < 300) return
  // RFC 6749 §5.2: what error and error_description may hold.
  expect(body.error).toMatch(/^[a-z_]+$/)
  expect(body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/)
}

const bases = (): Record<string, string>[] => [
  { grant_type: 'client_credentials', resource, scope: 'read:orders' },
  {
    grant_type: tokenExchange,
    resource,
    subject_token: 'sub_x',
    subject_token_type: accessTokenType,
    actor_token: 'x',
    actor_token_type: accessTokenType,
  },
]

const post = (path: string, body: string, headers: Record<string, string>) =>
  request(issuer.url + path, { method: 'POST', body, headers })

describe.each(Object.entries(values))('%s', (_, value) => {
  test('in each parameter, as a form and as JSON, of each endpoint', async () => {
    const paths = ['/oidc/token', '/oidc/token/introspection', '/oidc/token/revocation']
    for (const name of parameters) {
      const sent = bases().flatMap((base) => {
        const form = { ...base, [name]: value }
        const authenticated: Record<string, string> = name.startsWith('client_') ? {} : { authorization: basic(client) }
        return paths.flatMap((path) => [
          post(path, new URLSearchParams(form).toString(), {
            'content-type': 'application/x-www-form-urlencoded',
            ...authenticated,
          }),
          post(path, JSON.stringify(form), { 'content-type': 'application/json', ...authenticated }),
        ])
      })
      for (const answer of await Promise.all(sent)) expectProtocolAnswer(answer)
    }
  })

  test('in the Basic header, escaped or not', async () => {
    for (const text of [
      `${value}:x`,
      `x:${value}`,
      value,
      `${encodeURIComponent(value)}:x`,
      `x:${encodeURIComponent(value)}`,
    ]) {
      const authorization = `Basic ${Buffer.from(text).toString('base64')}`
      if (authorization.length > 12_000) continue
      expectProtocolAnswer(await post('/oidc/token', 'grant_type=client_credentials', { authorization }))
    }
  })

  test('as a bearer token and as an origin, as far as a header can hold it', async () => {
    if (/[^\x20-\x7e]/.test(value) || value.length > 12_000) return
    expectProtocolAnswer(await request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${value}` } }))
    expectProtocolAnswer(await request(`${issuer.url}/oidc/me`, { headers: { origin: value } }))
  })

  test('in each claim of a client assertion that is signed', async () => {
    for (const name of ['iss', 'sub', 'aud', 'jti', 'exp', 'nbf', 'iat']) {
      const { client_assertion } = await signer.assertion({ claims: { [name]: value } })
      const form = { ...bases()[0], client_assertion_type: assertionType, client_assertion }
      expectProtocolAnswer(
        await post('/oidc/token', new URLSearchParams(form).toString(), {
          'content-type': 'application/x-www-form-urlencoded',
        }),
      )
    }
  })
})

test('claims of other types than they should be', async () => {
  for (const value of [null, true, 0, -1, 1e300, [], [[]], {}, { toString: 'x' }]) {
    for (const name of ['iss', 'sub', 'aud', 'jti', 'exp', 'nbf', 'iat']) {
      const { client_assertion } = await signer.assertion({ claims: { [name]: value } as never })
      const answer = await issuer.token(undefined, {
        ...bases()[0],
        client_assertion_type: assertionType,
        client_assertion,
      })
      expectProtocolAnswer(answer)
      // Each of them says something wrong, but for a time that is not needed and lies in the past.
      if (!['iat', 'nbf'].includes(name)) expect(answer.status).toBe(401)
    }
  }
})

test('two hosts in one request', async () => {
  const { hostname, port } = new URL(issuer.url)
  const lines = ['POST /oidc/token HTTP/1.1', `Host: ${hostname}:${port}`, 'Host: other.test', 'Content-Length: 0']
  const socket = connect(Number(port), hostname, () => socket.write(`${lines.join('\r\n')}\r\n\r\n`))
  const [answer] = await once(socket.setEncoding('latin1'), 'data')
  socket.destroy()
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
})

test('none of this was our fault', () => {
  const errors = loudLines(issuer.logged()).filter(({ level }) => level !== 'warn')
  expect(errors).toEqual([])
})
