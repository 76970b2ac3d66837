import { expect, test } from 'vitest'
import { isFromOwnPage } from '../../../issuer/base/same-origin.ts'

const own = 'https://id.example.test'

test.each([
  [true, { origin: own }],
  [true, { origin: own, 'sec-fetch-site': 'same-origin' }],
  [true, { origin: own, 'sec-fetch-site': 'none' }],
  [true, { origin: 'null', 'sec-fetch-site': 'same-origin' }],
  [true, { 'sec-fetch-site': 'same-origin' }],
  [false, {}],
  [false, { origin: 'null' }],
  [false, { origin: 'null', 'sec-fetch-site': 'none' }],
  [false, { origin: 'null', 'sec-fetch-site': 'cross-site' }],
  [false, { origin: own, 'sec-fetch-site': 'cross-site' }],
  [false, { origin: own, 'sec-fetch-site': 'same-site' }],
  [false, { origin: `${own}.evil.example`, 'sec-fetch-site': 'same-origin' }],
  [false, { origin: 'http://id.example.test' }],
  [false, { origin: `${own}:8443` }],
])('%s for %o', (expected, headers) => {
  expect(isFromOwnPage({ headers }, own)).toBe(expected)
})
