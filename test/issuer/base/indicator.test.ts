import { expect, test } from 'vitest'
import { isIndicator, likelySpellings } from '../../../issuer/base/indicator.ts'

test.each([
  ['https://api.example.test/orders', true],
  ['urn:example:orders', true],
  ['https://api.example.test/orders?tenant=1', true],
  ['https://api.example.test/orders#part', false],
  ['/orders', false],
  ['orders', false],
  ['https://', false],
  ['https://api.example.test/grüße', false],
  ['https://api.example.test/a b', false],
  [`https://a/${'x'.repeat(2038)}`, true],
  [`https://a/${'x'.repeat(2039)}`, false],
])('%s is an indicator: %s', (text, expected) => {
  expect(isIndicator(text)).toBe(expected)
})

test('the spellings that may have been meant differ by case, default port and final slash', () => {
  expect(new Set(likelySpellings('HTTPS://api.example.test:443/Orders//'))).toEqual(
    new Set([
      'https://api.example.test:443/orders',
      'https://api.example.test:443/orders/',
      'https://api.example.test/orders',
      'https://api.example.test/orders/',
    ]),
  )
})
