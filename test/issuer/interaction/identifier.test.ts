import { expect, test } from 'vitest'
import { readIdentifier } from '../../../issuer/interaction/identifier.ts'
import { openRedirect, sealRedirect } from '../../../issuer/interaction/sealed-redirect.ts'

test.each([
  ['ada', 'username', 'ada'],
  [' ADA ', 'username', 'ada'],
  ['ａｄａ', 'username', 'ada'],
  ['Ada@Example.COM', 'email', 'ada@example.com'],
  ['+49 170 1234567', 'phone', '491701234567'],
  ['0049 (0)170-123.45.67', 'phone', '491701234567'],
  ['491701234567', 'phone', '491701234567'],
  ['12', 'username', '12'],
])('%s is the %s %s', (typed, type, canonical) => {
  expect(readIdentifier(typed)).toMatchObject({ type, canonical })
})

test('what can be nobody is not looked up', () => {
  for (const typed of ['', '   ', 'x'.repeat(257)]) expect(readIdentifier(typed)).toBeUndefined()
})

test('a sealed redirect opens only for its own browser and interaction', () => {
  const redirect = { response: { location: 'https://shop.example.test/cb?code=c' }, setCookies: ['a=b'] }
  const sealed = sealRedirect(redirect, 'browser', 'interaction')
  expect(openRedirect(sealed, 'browser', 'interaction')).toEqual(redirect)
  expect(() => openRedirect(sealed, 'another', 'interaction')).toThrow()
  expect(() => openRedirect(sealed, 'browser', 'another')).toThrow()
})
