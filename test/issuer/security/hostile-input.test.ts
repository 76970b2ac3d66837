import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../support/management.ts'

/**
 * Input that is well-formed and yet meant to harm: the service, whoever reads its data later, or who guards its paths.
 */
let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

describe('the Management API', () => {
  test('is at /api in this spelling only, so that what guards a path guards it', async () => {
    for (const path of ['/API/users', '/Api/users']) {
      const response = await fetch(`${api.url}${path}`, { headers: { authorization: `Bearer ${api.token()}` } })
      expect([path, response.status]).toEqual([path, 404])
    }
  })

  test('tells of a thousand faults only the first', async () => {
    const headers = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`not a name ${index}`, 'x']))
    const hook = { name: 'x', events: ['User.Created'], config: { url: 'https://receiver.example.test', headers } }
    const answer = await api.expect(400, 'POST', '/hooks', hook)
    expect(answer.data.issues).toHaveLength(50)
  })
})

describe('an avatar', () => {
  test.each(['javascript:alert(1)', 'data:text/html,<script>', 'file:///etc/passwd', 'vbscript:x'])(
    'is a picture on the web, not %s',
    async (avatar) => {
      expect(await api.call('POST', '/users', { avatar })).toMatchObject({ status: 400 })
      const user = await api.expect(200, 'POST', '/users', { avatar: 'https://pictures.example.test/a.png' })
      expect(await api.call('PATCH', `/users/${user.id}`, { avatar })).toMatchObject({ status: 400 })
    },
  )
})

describe('a redirect URI', () => {
  // Random text does not compress, and so would not fit into the index of origins.
  const long = Array.from({ length: 1_900 }, () =>
    String.fromCodePoint(0x4e00 + Math.floor(Math.random() * 20_000)),
  ).join('')
  test.each([
    ['a host of 1 900 letters', `https://${long}/`],
    ['letters that are not ASCII', 'https://exämple.test/cb'],
    ['a line break', 'https://a.test/cb\r\nset-cookie:a=b'],
    ['a tab', 'https://a.test/\tcb'],
    ['a backslash, which browsers read as a slash', 'https://evil.test\\@good.test/cb'],
    ['a quotation mark', 'https://a.test/"cb'],
  ])('never has %s', async (_name, uri) => {
    for (const member of ['redirectUris', 'postLogoutRedirectUris']) {
      const application = { name: 'x', type: 'Native', oidcClientMetadata: { [member]: [uri] } }
      expect(await api.call('POST', '/applications', application)).toMatchObject({
        status: 400,
        body: { code: 'guard.invalid_input' },
      })
    }
  })
})

describe('custom data', () => {
  const large = 'a'.repeat(200_000)
  const tooLong = { status: 422, body: { code: 'entity.value_too_long' } }

  test('does not grow without end', async () => {
    const user = await api.expect(200, 'POST', '/users', { customData: { first: large } })
    const application = await api.expect(200, 'POST', '/applications', {
      name: 'x',
      type: 'MachineToMachine',
      customData: { first: large },
    })
    for (const [path, body] of [
      [`/users/${user.id}/custom-data`, { customData: { second: large } }],
      [`/applications/${application.id}/custom-data`, { second: large }],
      [`/users/${user.id}`, { customData: { first: large, second: large } }],
      [`/applications/${application.id}`, { customData: { first: large, second: large } }],
    ] as const) {
      expect(await api.call('PATCH', path, body)).toMatchObject(tooLong)
    }
    expect(await api.expect(200, 'GET', `/users/${user.id}/custom-data`)).toEqual({ first: large })
    // What is replaced does not count.
    await api.expect(200, 'PATCH', `/users/${user.id}/custom-data`, { customData: { first: large, second: 1 } })
    expect(await api.call('POST', '/users', { customData: { a: large, b: large } })).toMatchObject(tooLong)
    const another = { name: 'x', type: 'SPA', customData: { a: large, b: large } }
    expect(await api.call('POST', '/applications', another)).toMatchObject(tooLong)
  })

  // Postgres keeps each digit of a number: a megabyte of these would be fifty when it is read.
  test.each(['1e308', '-1e101', '5e-324', '1e400', '-1e400'])('holds no number like %s', async (number) => {
    const body = `{"customData":{"list":[1,${number}]}}`
    expect(await api.call('POST', '/users', body)).toMatchObject({
      status: 400,
      body: { code: 'guard.invalid_input' },
    })
  })

  test('holds other numbers as they are', async () => {
    const customData = { list: [0, -1, 1e100, -1e-100, 9007199254740991, 0.1, 6.62607015e-34] }
    expect((await api.expect(200, 'POST', '/users', { customData })).customData).toEqual(customData)
  })
})

test('the keys of an application are no store of data', async () => {
  const key = { kty: 'OKP', crv: 'Ed25519', kid: 'a', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
  const application = (more: object) => ({
    name: 'x',
    type: 'MachineToMachine',
    oidcClientMetadata: { jwks: { keys: [{ ...key, ...more }] } },
  })
  await api.expect(200, 'POST', '/applications', application({}))
  expect(await api.call('POST', '/applications', application({ x5c: ['a'.repeat(100_000)] }))).toMatchObject({
    status: 400,
    body: { code: 'guard.invalid_input' },
  })
})
