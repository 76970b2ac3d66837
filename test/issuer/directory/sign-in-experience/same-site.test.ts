import { expect, test } from 'vitest'
import { isSameSite } from '../../../../issuer/directory/sign-in-experience/links.ts'

test.each([
  ['https://auth.acme.test/sign-in', 'https://auth.acme.test', true],
  ['https://login.acme.test/', 'https://auth.acme.test', true],
  ['https://acme.test/', 'https://auth.acme.test', true],
  ['https://login.auth.acme.test/', 'https://auth.acme.test', true],
  ['https://login.acme.test/', 'https://acme.test', true],
  ['http://localhost:5173/', 'http://localhost:3001', true],
  ['https://other.test/', 'https://acme.test', false],
  ['https://acme.test.evil.test/', 'https://auth.acme.test', false],
  ['https://evilacme.test/', 'https://auth.acme.test', false],
  ['http://auth.acme.test/', 'https://auth.acme.test', false],
  ['http://127.0.0.1:5173/', 'http://localhost:3001', false],
  ['https://10.0.0.2/', 'https://10.0.0.1', false],
])('pages at %s of an issuer at %s: %s', (link, base, isSame) => {
  expect(isSameSite(link, base)).toBe(isSame)
})
