import { expect, test } from 'vitest'
import { PolicyError, policyInputSchema, principalInput } from '../../policies/decide.ts'
import { policyInput } from './rule-folder.ts'

const claims = { iss: 'https://issuer.example.test', aud: 'https://api.example.test', exp: 2, sub: 'u1' }

test('a full token becomes the principal of the input, every claim at hand', () => {
  const token = {
    ...claims,
    iat: 1,
    jti: 'j1',
    sid: 's1',
    acr: 'urn:surrogate:acr:mfa',
    amr: ['pwd', 'otp', 'mfa'],
    auth_time: 1,
    client_id: 'web',
    organization_id: 'o1',
    scope: 'read:orders  write:orders ',
    act: { sub: 'support', act: { sub: 'backend' } },
    plan: 'gold',
  }
  expect(principalInput(token)).toEqual({
    token: {
      iss: claims.iss,
      aud: [claims.aud],
      scopes: ['read:orders', 'write:orders'],
      jti: 'j1',
      sid: 's1',
      impersonation: true,
      acr: 'urn:surrogate:acr:mfa',
      amr: ['pwd', 'otp', 'mfa'],
      auth_time: 1,
      iat: 1,
      exp: 2,
      claims: token,
    },
    subject: { id: 'u1' },
    actor: { id: 'support', chain: ['support', 'backend'] },
    client: { id: 'web' },
    organization: { id: 'o1' },
  })
})

test('what the token does not say is absent, and the input stays one of the documented shape', () => {
  const principal = principalInput(claims)
  expect(principal).toEqual({
    token: { iss: claims.iss, aud: [claims.aud], scopes: [], impersonation: false, exp: 2, claims },
    subject: { id: 'u1' },
  })
  expect(policyInputSchema.safeParse({ ...policyInput(), ...principal }).success).toBe(true)
})

test.each([
  ['of an impersonation session', { sid: 'k3v9' }, true],
  ['of an impersonation session, with who acts', { sid: 'k3v9', act: { sub: 'support' } }, true],
  ['of a sign-in', { sid: 'ps_k3v9' }, false],
  ['of a sign-in that a backend acts on', { sid: 'ps_k3v9', act: { sub: 'backend' } }, false],
  ['of an application', {}, false],
])('a sign-in is not taken for an impersonation: a token %s', (_, change, impersonation) => {
  expect(principalInput({ ...claims, ...change }).token).toMatchObject({ impersonation })
})

test('what an unknown issuer says in its own way of the sign-in proves nothing, and does not spoil its tokens', () => {
  const { token } = principalInput({ ...claims, acr: 1, amr: 'pwd', auth_time: '2026-01-01T00:00:00Z' })
  expect(Object.keys(token!)).toEqual(['iss', 'aud', 'scopes', 'impersonation', 'exp', 'claims'])
})

test.each([
  ['act', { act: 'support' }],
  ['act', { act: null }],
  ['act', { act: {} }],
  ['act', { act: [] }],
  ['act', { act: { sub: '', act: false } }],
  ['act', { act: { sub: 7 } }],
  ['scope', { scope: ['read:orders'] }],
  ['aud', { aud: [7] }],
  ['sub', { sub: 7 }],
  ['sid', { sid: null }],
  ['exp', { exp: '2' }],
])('a claim %s of another shape is refused, not overlooked: %j', (_, change) => {
  expect(() => principalInput({ ...claims, ...change })).toThrow(PolicyError)
})

test('a chain of actors without end is refused', () => {
  let act: unknown = { sub: 'a' }
  for (let depth = 0; depth < 20; depth++) act = { sub: 'a', act }
  expect(() => principalInput({ ...claims, act })).toThrow(PolicyError)
})
