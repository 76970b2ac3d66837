import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../support/management.ts'

/** What holds for every route: the caller, the body, the query, the answer. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const withHeaders = (headers: Record<string, string>) => ({ token: undefined, headers })

describe('the caller', () => {
  test.each([
    [{}, 'auth.authorization_header_missing', 'Bearer'],
    [{ authorization: 'Basic YTpi' }, 'auth.authorization_token_type_not_supported', 'Bearer'],
    [{ authorization: 'bearerX' }, 'auth.authorization_token_type_not_supported', 'Bearer'],
    [{ authorization: 'Bearer' }, 'auth.unauthorized', 'Bearer error="invalid_token"'],
    [{ authorization: 'Bearer a b' }, 'auth.unauthorized', 'Bearer error="invalid_token"'],
    [{ authorization: 'Bearer a.b.c' }, 'auth.unauthorized', 'Bearer error="invalid_token"'],
  ])('with %o is refused: %s', async (headers, code, challenge) => {
    const answer = await api.call('GET', '/users', undefined, withHeaders(headers as Record<string, string>))
    expect(answer).toMatchObject({ status: 401, body: { code } })
    expect(answer.body.message).toBeTypeOf('string')
    expect(answer.headers.get('www-authenticate')).toBe(challenge)
  })

  test('may write the scheme as it likes, and use an alias of the audience', async () => {
    await api.expect(200, 'GET', '/users', undefined, withHeaders({ authorization: `bearer ${api.token()}` }))
    await api.expect(200, 'GET', '/users', undefined, { token: api.token({ aud: 'https://default.logto.app/api' }) })
  })

  test('whose token was tampered with is refused', async () => {
    const [header, payload, signature] = api.token({ scope: 'read' }).split('.')
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString())
    const forged = Buffer.from(JSON.stringify({ ...claims, scope: 'all' })).toString('base64url')
    const answer = await api.call('GET', '/users', undefined, { token: `${header}.${forged}.${signature}` })
    expect(answer).toMatchObject({ status: 401, body: { code: 'auth.unauthorized' } })
  })

  test('gets a request id with every answer, and nothing that may be stored', async () => {
    for (const answer of [
      await api.call('GET', '/users'),
      await api.call('GET', '/users/none'),
      await api.call('GET', '/x'),
    ]) {
      expect(answer.headers.get('logto-core-request-id')).toMatch(/^[0-9a-z]{21}$/)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-powered-by')).toBeNull()
    }
  })
})

describe('the route', () => {
  test('that does not exist is 404, for the right path in the wrong case too', async () => {
    for (const path of ['/nothing', '/Users', '/users/', '/users//roles']) {
      expect(await api.call('GET', path)).toMatchObject({ status: 404, body: { code: 'guard.not_found' } })
    }
  })

  test('refuses other methods and names its own', async () => {
    const answer = await api.call('PUT', '/users')
    expect(answer).toMatchObject({ status: 405, body: { code: 'guard.method_not_allowed' } })
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
  })

  test('answers HEAD as GET, without the body', async () => {
    const answer = await api.call('HEAD', '/users?page_size=1')
    expect(answer).toMatchObject({ status: 200, body: undefined })
    expect(answer.headers.get('total-number')).toBe('0')
  })

  test.each(['/users/%00', '/users/%E0%A4%A', '/users/%ff'])('refuses the path %s', async (path) => {
    expect(await api.call('GET', path)).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  })
})

describe('the body', () => {
  test.each([
    ['no JSON', '{"name":', {}, 400, 'guard.invalid_json'],
    ['no object', '[]', {}, 400, 'guard.invalid_input'],
    ['two values', '{}{}', {}, 400, 'guard.invalid_json'],
    ['another type', '{}', { 'content-type': 'text/plain' }, 415, 'guard.unsupported_media_type'],
    ['a form', 'name=a', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'guard.unsupported_media_type'],
    [
      'another charset',
      '{}',
      { 'content-type': 'application/json; charset=utf-16' },
      415,
      'guard.unsupported_media_type',
    ],
    ['compression', '{}', { 'content-encoding': 'gzip' }, 415, 'guard.unsupported_media_type'],
    ['NUL', '{"name":"a\\u0000b"}', {}, 400, 'guard.invalid_input'],
    ['an unpaired surrogate', '{"name":"\\ud800"}', {}, 400, 'guard.invalid_input'],
    ['NUL in a member name', '{"customData":{"a\\u0000":1}}', {}, 400, 'guard.invalid_input'],
    ['deep nesting', `{"customData":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}`, {}, 400, 'guard.invalid_input'],
  ])('of %s is refused', async (_name, body, headers, status, code) => {
    expect(await api.call('POST', '/users', body, { token: api.token(), headers })).toMatchObject({
      status,
      body: { code },
    })
  })

  test.each(['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8" ;'])(
    'of type %s is read',
    async (type) => {
      const answer = await api.call('POST', '/users', '[]', { token: api.token(), headers: { 'content-type': type } })
      expect(answer).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
    },
  )

  test('that is not UTF-8 is refused', async () => {
    const bytes = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff]), Buffer.from('"}')])
    expect(await post(bytes)).toMatchObject({ status: 400, body: { code: 'guard.invalid_json' } })
  })

  test('over 1 MB is 413, announced or not', async () => {
    const large = Buffer.from(JSON.stringify({ name: 'a'.repeat(1_048_576) }))
    expect(await post(large)).toMatchObject({ status: 413, body: { code: 'guard.body_too_large' } })
    expect(await post(large, { chunked: true })).toMatchObject({ status: 413, body: { code: 'guard.body_too_large' } })
    expect(await api.call('GET', '/users?page_size=1')).toMatchObject({ status: 200, body: [] })
  })

  test('is not read from strangers', async () => {
    const answer = await api.call('POST', '/users', 'not JSON', { token: undefined })
    expect(answer).toMatchObject({ status: 401 })
  })

  test('tells every issue, with its path and without the value', async () => {
    const answer = await api.call('POST', '/users', { username: '1 secret', primaryEmail: 'nobody', password: '' })
    expect(answer.body).toEqual({
      code: 'guard.invalid_input',
      message: 'The request is not valid.',
      details: 'username: must begin with a letter or _ and hold only word characters',
      data: {
        issues: [
          { path: 'username', message: 'must begin with a letter or _ and hold only word characters' },
          { path: 'primaryEmail', message: 'must be an email address' },
          { path: 'password', message: expect.any(String) },
        ],
      },
    })
  })

  const post = (bytes: Buffer, { chunked = false } = {}) =>
    new Promise<{ status: number | undefined; body: unknown }>((resolve, reject) => {
      const url = new URL(`${api.url}/api/users`)
      const outgoing = request(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${api.token()}`,
          'content-type': 'application/json',
          ...(chunked ? {} : { 'content-length': bytes.length }),
        },
      })
      outgoing.on('response', async (response) => {
        let text = ''
        for await (const chunk of response.setEncoding('utf8')) text += chunk
        resolve({ status: response.statusCode, body: JSON.parse(text) })
      })
      // The server may hang up before it has read everything.
      outgoing.on(
        'error',
        (error: NodeJS.ErrnoException) => ['EPIPE', 'ECONNRESET'].includes(error.code ?? '') || reject(error),
      )
      outgoing.write(bytes.subarray(0, 700_000))
      outgoing.end(bytes.subarray(700_000))
    })
})

describe('a failure of ours', () => {
  test('is 500 without a word about its cause, which is logged', async () => {
    await api.database.knex.schema.renameTable('logs', 'logs_away')
    try {
      const answer = await api.call('POST', '/users', { name: 'Ada' })
      expect(answer).toMatchObject({
        status: 500,
        body: { code: 'server.error', message: 'Something went wrong on our side.' },
      })
      expect(Object.keys(answer.body)).toEqual(['code', 'message'])
      expect(api.logged()).toContain('relation \\"logs\\" does not exist')
    } finally {
      await api.database.knex.schema.renameTable('logs_away', 'logs')
    }
    expect(await api.expect(200, 'GET', '/users')).toEqual([])
    expect(await api.events()).toEqual([])
  })
})
