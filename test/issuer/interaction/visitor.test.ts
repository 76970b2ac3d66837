import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createClientAddress, createIsFromProxy } from '../../../issuer/base/client-address.ts'
import { createCookies } from '../../../issuer/base/cookies.ts'
import { createVisitorOf } from '../../../issuer/interaction/visitor.ts'

const proxies = ['10.0.0.0/8']
const clientAddress = createClientAddress(proxies)
const visitorOf = createVisitorOf({
  cookies: createCookies({ secure: true }),
  originOf: (request) => ({ ip: clientAddress(request), userAgent: request.headers['user-agent'] }),
  isFromProxy: createIsFromProxy(proxies),
})

const requestFrom = (remoteAddress: string, headers: Record<string, string>) =>
  ({ socket: { remoteAddress }, headers }) as unknown as IncomingMessage

const told = {
  'user-agent': 'A browser',
  'x-forwarded-for': '198.51.100.7',
  'x-logto-cf-country': 'DE',
  'x-logto-cf-bot-verified': 'false',
  'x-logto-cf-city': 'x'.repeat(1_000),
}

test('what a trusted proxy tells of a client is what scripts of custom claims see', () => {
  expect(visitorOf(requestFrom('::ffff:10.1.2.3', told)).signInContext).toEqual({
    ip: '198.51.100.7',
    userAgent: 'A browser',
    country: 'DE',
    botVerified: 'false',
    city: 'x'.repeat(256),
  })
})

test('nobody says of themselves where they are', () => {
  expect(visitorOf(requestFrom('203.0.113.9', told)).signInContext).toEqual({
    ip: '203.0.113.9',
    userAgent: 'A browser',
  })
})

test('two cookies of one name are none: somebody else may have set one', () => {
  const value = 'a'.repeat(43)
  const session = (cookie: string) => visitorOf(requestFrom('203.0.113.9', { cookie })).session
  expect(session(`__Host-surrogate_session=${value}; surrogate_session=${'b'.repeat(43)}`)).toBe(value)
  expect(session(`__Host-surrogate_session=${value}; __Host-surrogate_session=${'b'.repeat(43)}`)).toBeUndefined()
  expect(session(`__Host-surrogate_session=${value}x`)).toBeUndefined()
})

test('of thousands of addresses, each is told from a proxy every time that it comes', () => {
  const isFromProxy = createIsFromProxy(proxies)
  const addresses = Array.from({ length: 2_500 }, (_, index) => `${10 + (index % 3)}.0.${index >> 8}.${index & 255}`)
  for (let time = 0; time < 2; time++) {
    for (const address of [...addresses, 'unknown', ''])
      expect([address, isFromProxy(requestFrom(address, {}))]).toEqual([address, address.startsWith('10.')])
  }
})
