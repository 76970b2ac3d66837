import { describe, expect, test } from 'vitest'
import { isLoopbackUri, matchesRedirectUri } from '../../../issuer/base/redirect-uri.ts'

const web = { native: false }
const native = { native: true }

test('a redirect URI is the registered one byte for byte, however a parser would read it', () => {
  const registered = 'https://good.example/cb?a=1'
  expect(matchesRedirectUri([registered], registered, web)).toBe(true)
  const others = [
    'https://good.example:443/cb?a=1',
    'https://good.example/cb/?a=1',
    'https://GOOD.example/cb?a=1',
    'https://good.example/%63b?a=1',
    'https://good.example/cb?a=1&b=2',
    'https://good.example/cb?a=1#',
    'https://good.example/cb?a=1#x',
    'https://good.example/x/../cb?a=1',
    'https://good.example/cb?a=1\n',
    'https://good.example/\tcb?a=1',
    ' https://good.example/cb?a=1',
    'https://good.example@evil.example/cb?a=1',
    'https://good.example.evil.example/cb?a=1',
    'https://good.example\\@evil.example/cb?a=1',
    '//good.example/cb?a=1',
    '',
  ]
  for (const options of [web, native])
    expect(others.filter((other) => matchesRedirectUri([registered], other, options))).toEqual([])
})

describe('a native application on loopback', () => {
  test.each(['127.0.0.1', '[::1]', 'localhost'])('may take any port of %s', (host) => {
    const registered = [`http://${host}/cb?a=1`]
    for (const port of ['', ':80', ':50123', ':65535'])
      expect(matchesRedirectUri(registered, `http://${host}${port}/cb?a=1`, native)).toBe(true)
    expect(matchesRedirectUri([`http://${host}:3000/cb`], `http://${host}/cb`, native)).toBe(true)
    expect(matchesRedirectUri([`http://${host}`], `http://${host}:7`, native)).toBe(true)
    expect(matchesRedirectUri(registered, `http://${host}:50123/cb?a=1`, web)).toBe(false)
  })

  test.each([
    'http://127.0.0.1:50123/other',
    'http://127.0.0.1:50123/cb?x=1',
    'http://127.0.0.1:50123/cb/',
    'http://127.0.0.1:50123/cb#x',
    'http://127.0.0.1:50123',
    'http://127.0.0.1:/cb',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:65536/cb',
    'http://127.0.0.1:1e3/cb',
    'http://127.0.0.1:80@evil.example/cb',
    'http://127.0.0.1@evil.example/cb',
    'http://user@127.0.0.1:50123/cb',
    'http://127.0.0.2:50123/cb',
    'http://localhost.evil:50123/cb',
    'http://localhost:50123/cb',
    'http://127.1:50123/cb',
    'http://2130706433:50123/cb',
    'http://[::ffff:127.0.0.1]:50123/cb',
    'http://[::1]:50123/cb',
    'https://127.0.0.1:50123/cb',
    'HTTP://127.0.0.1:50123/cb',
    'http:\\\\127.0.0.1:50123/cb',
  ])('is not reached by %s', (presented) => {
    expect(matchesRedirectUri(['http://127.0.0.1/cb'], presented, native)).toBe(false)
  })

  test('has no free port over https or on another host', () => {
    expect(matchesRedirectUri(['https://127.0.0.1/cb'], 'https://127.0.0.1:50123/cb', native)).toBe(false)
    expect(matchesRedirectUri(['http://good.example/cb'], 'http://good.example:50123/cb', native)).toBe(false)
  })
})

test('what is on this machine is told by its spelling', () => {
  expect(['http://localhost:3000/cb', 'http://[::1]/', 'http://127.0.0.1?a'].map(isLoopbackUri)).toEqual([
    true,
    true,
    true,
  ])
  expect(['http://localhost.evil/', 'https://localhost/', 'http://127.0.0.1.nip.io/'].map(isLoopbackUri)).toEqual([
    false,
    false,
    false,
  ])
})
