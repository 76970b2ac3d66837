import { describe, expect, test } from 'vitest'
import { signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import type { AuthorizationRequest } from '../../../issuer/interaction/authorization-request.ts'
import { nextStep, type Situation } from '../../../issuer/interaction/next-step.ts'
import type { PersonFacts } from '../../../issuer/interaction/person-facts.ts'
import { authenticationBy, satisfiesAcr } from '../../../issuer/interaction/proofs.ts'

const request: AuthorizationRequest = {
  clientId: 'client',
  redirectUri: 'https://shop.example.test/cb',
  responseMode: 'query',
  scopes: ['openid'],
  resourceScopes: {},
  resources: [],
  prompts: [],
  uiLocales: [],
  acrValues: [],
  wantsOfflineAccess: false,
}
const session = { id: 'session', userId: 'ada', acr: 'urn:surrogate:acr:basic' as const, age: 100 }
const byPassword = (userId: string) => ({
  ...{ id: 'proof', kind: 'password' as const, purpose: 'sign_in' as const, userId },
  data: { identifier: { type: 'username' as const, value: userId } },
})
const person: PersonFacts = {
  ...{ id: 'ada', isSuspended: false, hasPassword: true, isPasswordExpired: false, hasUsername: true },
  ...{ hasEmail: false, hasPhone: false, hasTotp: false, passkeys: 0, backupCodes: 0, hasSkippedMfa: false },
  mfaOrganizations: [],
}
const settings = signInExperience.schema.parse({})
const thirdParty = { type: 'SPA' as const, isThirdParty: true }

const next = ({
  request: asked,
  ...rest
}: Partial<Omit<Situation, 'request'>> & { request?: Partial<AuthorizationRequest> }) =>
  nextStep({
    event: 'SignIn',
    client: { type: 'SPA', isThirdParty: false },
    settings,
    staged: {},
    person: rest.proofs?.length ? person : undefined,
    decision: undefined,
    session: undefined,
    proofs: [],
    consent: undefined,
    state: {},
    ...rest,
    request: { ...request, ...asked },
  })

describe('whoever has no session', () => {
  test('signs in; a proof is enough', () => {
    expect(next({})).toMatchObject({ step: 'sign_in', reasons: ['no_session'], options: { proofs: ['password'] } })
    expect(next({ proofs: [byPassword('ada')] })).toEqual({ step: 'done', reasons: [], options: {} })
  })
})

describe('a session', () => {
  test('is enough when nothing else is asked for', () => {
    expect(next({ session }).step).toBe('done')
    expect(next({ session, request: { prompts: ['none'] } }).step).toBe('done')
    expect(next({ session, request: { prompts: ['consent'] } }).step).toBe('done')
    expect(next({ session, request: { maxAge: 101 } }).step).toBe('done')
  })

  test.each<[string, Partial<AuthorizationRequest>]>([
    ['login', { prompts: ['login'] }],
    ['login', { prompts: ['create'] }],
    ['max_age', { maxAge: 100 }],
    ['max_age', { maxAge: 0 }],
    ['hint', { expectedUserId: 'bob' }],
  ])('is not when there is %s, until it is proven here', (reason, asked) => {
    expect(next({ session, request: asked })).toMatchObject({ step: 'sign_in', reasons: [reason] })
    expect(next({ session, request: asked, proofs: [byPassword(asked.expectedUserId ?? 'ada')] }).step).toBe('done')
  })

  test('a choice of account counts for the session that it was about', () => {
    const asked = { prompts: ['select_account' as const] }
    expect(next({ session, request: asked }).step).toBe('select_account')
    expect(next({ session, request: asked, state: { account: { sessionId: 'session' } } }).step).toBe('done')
    expect(next({ session, request: asked, state: { account: { sessionId: 'other' } } }).step).toBe('select_account')
    expect(next({ session, request: asked, state: { account: false } })).toMatchObject({
      step: 'sign_in',
      reasons: ['another_account'],
    })
    expect(next({ request: asked }).step).toBe('sign_in')
  })

  test('nobody else than the person whom the client expects gets through', () => {
    const asked = { expectedUserId: 'bob' }
    expect(next({ request: asked, proofs: [byPassword('ada')] })).toMatchObject({
      step: 'denied',
      options: { error: 'login_required' },
    })
  })
})

describe('a third-party application', () => {
  test('is allowed by the person in front of it only', () => {
    const allowed = (userId: string, isAllowed = true) => ({ consent: { userId, isAllowed, organizationIds: [] } })
    expect(next({ session, client: thirdParty }).step).toBe('consent')
    expect(next({ session, client: thirdParty, state: allowed('ada') }).step).toBe('done')
    expect(next({ session, client: thirdParty, state: allowed('bob') }).step).toBe('consent')
    expect(next({ session, client: thirdParty, state: allowed('ada', false) })).toMatchObject({
      step: 'denied',
      reasons: ['consent'],
      options: { error: 'access_denied' },
    })
    expect(next({ session, client: thirdParty, proofs: [byPassword('bob')], state: allowed('ada') }).step).toBe(
      'consent',
    )
  })

  test('needs no page for what was allowed before, unless it asks for one', () => {
    const consent = { scopes: ['openid', 'profile'], resources: { 'https://api': ['read'] }, organizations: [] }
    const covered = {
      resources: ['https://api'],
      resourceScopes: { 'https://api': ['read'] },
      scopes: ['openid', 'read'],
    }
    const step = (asked: Partial<AuthorizationRequest>) =>
      next({ session, client: thirdParty, consent, request: asked }).step
    expect(step(covered)).toBe('done')
    expect(step({ ...covered, prompts: ['consent'] })).toBe('consent')
    expect(step({ scopes: ['openid', 'email'] })).toBe('consent')
    expect(step({ resources: ['https://other'] })).toBe('consent')
    expect(step({ ...covered, resourceScopes: { 'https://api': ['read', 'write'] } })).toBe('consent')
    expect(step({ organizationId: 'acme' })).toBe('consent')
    expect(step({ scopes: ['openid', 'offline_access'], wantsOfflineAccess: true })).toBe('done')
    expect(next({ session, client: { ...thirdParty, type: 'Native' }, consent, request: covered }).step).toBe('consent')
  })
})

test('what is cancelled is denied, whatever was proven', () => {
  expect(next({ session, proofs: [byPassword('ada')], state: { isCancelled: true } })).toMatchObject({
    step: 'denied',
    options: { error: 'access_denied' },
  })
})

test('acr tells the truth, and what nobody can reach is not asked for', () => {
  expect(authenticationBy([{ kind: 'password' }])).toEqual({ amr: ['pwd'], acr: 'urn:surrogate:acr:basic' })
  expect(satisfiesAcr('urn:surrogate:acr:mfa', ['urn:surrogate:acr:basic'])).toBe(true)
  expect(satisfiesAcr('urn:surrogate:acr:basic', ['urn:surrogate:acr:phr', 'urn:surrogate:acr:mfa'])).toBe(false)
  expect(satisfiesAcr('urn:surrogate:acr:basic', ['something else'])).toBe(true)
  expect(next({ session, request: { acrValues: ['urn:surrogate:acr:mfa'] } }).step).toBe('done')
})
