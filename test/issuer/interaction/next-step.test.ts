import { describe, expect, test } from 'vitest'
import { type MfaFactor, signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import type { AuthorizationRequest } from '../../../issuer/interaction/authorization-request.ts'
import { nextStep } from '../../../issuer/interaction/next-step.ts'
import type { PersonFacts } from '../../../issuer/interaction/person-facts.ts'
import {
  authenticationBy,
  type Proof,
  type ProofKindName,
  purposesOf,
  satisfiesAcr,
} from '../../../issuer/interaction/proofs.ts'
import { newPerson, type Situation } from '../../../issuer/interaction/situation.ts'
import { acrs } from '../../../issuer/tokens/sessions/session.ts'

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
  hasIdentity: false,
  ...{ hasEmail: false, hasPhone: false, hasTotp: false, passkeys: 0, backupCodes: 0 },
  ...{ hasSkippedMfa: false, hasSkippedPasskey: false, mfaOrganizations: [] },
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

const [basic, multiFactor, strongest] = ['basic', 'mfa', 'phr'].map((name) => `urn:surrogate:acr:${name}`) as [
  string,
  string,
  string,
]
const proof = (
  kind: ProofKindName,
  purpose: Proof['purpose'] = 'sign_in',
  { userId = 'ada', identifier }: { userId?: string | null; identifier?: Proof['data']['identifier'] } = {},
): Proof => ({ id: `${kind}-${purpose}`, kind, purpose, userId, data: identifier ? { identifier } : {} })
const mailed = { identifier: { type: 'email' as const, value: 'ada@example.test' } }
const password = byPassword('ada')
const require = (...names: ('mfa' | 'phr' | 'enrol' | 'captcha')[]) => ({
  decision: { allow: true, require: names, session: {} } as Situation['decision'],
})
const withMfa = (factors: readonly string[], policy = 'NoPrompt', more: object = {}) =>
  signInExperience.schema.parse({ mfa: { factors, policy }, ...more })
const allFactors = ['Totp', 'WebAuthn', 'BackupCode', 'EmailVerificationCode', 'PhoneVerificationCode']
const holding = (facts: Partial<PersonFacts>): { person: PersonFacts } => ({ person: { ...person, ...facts } })

describe('a second factor', () => {
  const settings = withMfa(allFactors)
  const step = (facts: Partial<PersonFacts>, proofs: Proof[], rest: object = require('mfa')) =>
    next({ settings, proofs, ...holding(facts), ...rest })

  test('is asked for where the rules say so, by what the person has', () => {
    expect(step({ hasTotp: true, backupCodes: 3 }, [password])).toMatchObject({
      ...{ step: 'mfa', reasons: ['required'] },
      options: { proofs: ['totp', 'backup_code'] },
    })
    expect(step({ hasTotp: true }, [password, proof('totp', 'mfa')]).step).toBe('done')
    expect(step({ hasTotp: true }, [password], { decision: undefined }).step).toBe('done')
  })

  test('is not the mailbox that told who it is, nor another first factor', () => {
    const byMail = proof('email_code', 'sign_in', mailed)
    expect(step({ hasEmail: true }, [byMail])).toMatchObject({ step: 'enrol', options: { isSkippable: false } })
    expect(step({ hasEmail: true, hasPhone: true }, [byMail]).options.proofs).toEqual(['phone_code'])
    expect(step({ hasEmail: true, hasTotp: true }, [byMail, proof('email_code', 'mfa')]).options.proofs).toEqual([
      'totp',
    ])
    expect(step({ hasTotp: true }, [password, byMail])).toMatchObject({ step: 'mfa' })
    expect(step({ hasTotp: true }, [password, proof('totp', 'bind')])).toMatchObject({ step: 'mfa' })
    const byLink = proof('one_time_token', 'sign_in', mailed)
    expect(step({ hasEmail: true, hasTotp: true }, [byLink, proof('email_code', 'mfa')]).step).toBe('mfa')
  })

  test('that would be the same mailbox comes after another proof of who it is, where the person has one', () => {
    const byMail = proof('email_code', 'sign_in', mailed)
    const methods = [{ identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }]
    const signUp = { identifiers: ['email'], password: false, verify: true }
    const only = (more: object = {}) =>
      withMfa(['EmailVerificationCode'], 'Mandatory', {
        signIn: { methods },
        signUp,
        forgotPasswordMethods: [],
        ...more,
      })
    const due = (facts: Partial<PersonFacts>, rest: object = {}) =>
      step({ hasEmail: true, ...facts }, [byMail], { ...require('mfa'), settings: only(), ...rest })
    const another = (...proofs: string[]) => ({ step: 'sign_in', reasons: ['another_factor'], options: { proofs } })
    expect(due({})).toEqual(another('password'))
    expect(due({ hasPassword: false })).toMatchObject({ step: 'blocked', reasons: ['required', 'out_of_reach'] })
    expect(due({ hasPassword: false }, { settings: only({ forgotPasswordMethods: null }) })).toEqual(
      another('password'),
    )
    const byPasskey = { settings: only({ passkeySignIn: { enabled: true } }) }
    expect(due({ hasPassword: false, passkeys: 1 }, byPasskey)).toEqual(another('passkey'))
    expect(due({}, { decision: undefined }).step).toBe('done')
    const after = [password, proof('email_code', 'mfa')]
    expect(step({ hasEmail: true }, after, { ...require('mfa'), settings: only() }).step).toBe('done')
  })

  test('is a passkey, everywhere', () => {
    for (const wanted of ['mfa', 'phr'] as const) {
      expect(step({ passkeys: 1, hasTotp: true }, [proof('passkey')], require(wanted)).step).toBe('done')
      expect(step({ passkeys: 1 }, [password, proof('passkey', 'mfa')], require(wanted)).step).toBe('done')
    }
    const asked = { request: { acrValues: [strongest] }, decision: undefined }
    expect(step({ passkeys: 1 }, [proof('passkey')], asked).step).toBe('done')
  })

  test('that resists phishing is asked for by itself; who has none shows another before adding it', () => {
    const demanded = require('mfa', 'phr')
    expect(step({ passkeys: 1, hasTotp: true }, [password], demanded).options.proofs).toEqual(['passkey'])
    for (const rules of [demanded, require('phr')]) {
      expect(step({ hasTotp: true }, [password], rules)).toMatchObject({ step: 'mfa', options: { proofs: ['totp'] } })
      const proven = [password, proof('totp', 'mfa')]
      expect(step({ hasTotp: true }, proven, rules)).toMatchObject({
        ...{ step: 'enrol', options: { factors: ['WebAuthn'], isSkippable: false } },
      })
      expect(step({ hasTotp: true }, [...proven, proof('passkey', 'bind')], rules).step).toBe('done')
    }
    expect(step({}, [password], { ...demanded, settings: withMfa(['Totp']) })).toMatchObject({
      ...{ step: 'blocked', reasons: ['required', 'out_of_reach'] },
    })
  })

  test('that the client asks for and nobody has leaves acr as it is', () => {
    const asked = { request: { acrValues: [strongest] }, decision: undefined }
    expect(step({ hasTotp: true }, [password], asked).step).toBe('done')
    expect(step({ hasTotp: true, passkeys: 1 }, [password], asked)).toMatchObject({
      ...{ step: 'mfa', reasons: ['acr'], options: { proofs: ['passkey'] } },
    })
    // What was done counts for what it is: never for the class that was asked for.
    expect(authenticationBy([{ kind: 'password' }, { kind: 'totp' }])).toEqual({
      ...{ amr: ['pwd', 'otp', 'mfa'], acr: multiFactor },
    })
    expect(step({ hasTotp: true, passkeys: 1 }, [password, proof('totp', 'mfa')], asked).step).toBe('mfa')
    const either = { request: { acrValues: [strongest, multiFactor] }, decision: undefined }
    expect(step({ hasTotp: true, passkeys: 1 }, [password, proof('totp', 'mfa')], either).step).toBe('done')
    expect(step({ hasTotp: true }, [password], { request: { acrValues: [basic] }, decision: undefined }).step).toBe(
      'done',
    )
  })
})

describe('a session that the rules are asked about', () => {
  const step = (acr: string, rules: object, rest: object = {}) =>
    next({ session: { ...session, acr: acr as typeof session.acr }, ...rules, ...rest })
  const again = { step: 'sign_in', reasons: ['required'] }

  test.each([
    [basic, 'mfa', again],
    [multiFactor, 'mfa', { step: 'done' }],
    [strongest, 'mfa', { step: 'done' }],
    [multiFactor, 'phr', again],
    [strongest, 'phr', { step: 'done' }],
    // These are for who signs in.
    [basic, 'captcha', { step: 'done' }],
    [basic, 'enrol', { step: 'done' }],
  ] as const)('%s, of which they require %s', (acr, wanted, expected) => {
    expect(step(acr, require(wanted))).toMatchObject(expected)
  })

  test('goes nowhere that they refuse, and no consent is asked for there', () => {
    const refused = { decision: { allow: false, reason: 'no', require: [], session: {} } }
    for (const client of [{ type: 'SPA' as const, isThirdParty: false }, thirdParty]) {
      expect(step(strongest, refused, { client })).toEqual({
        ...{ step: 'blocked', reasons: ['denied_by_rules'], options: { description: 'no' } },
      })
    }
    expect(step(basic, require('mfa'), { client: thirdParty })).toMatchObject(again)
  })

  test('is asked for what settings and client want besides, all at once', () => {
    const asked = { request: { acrValues: [multiFactor], maxAge: 1 }, settings: withMfa(['Totp']) }
    expect(step(basic, require('mfa'), asked).reasons).toEqual(['max_age', 'acr', 'required'])
    const closed = { settings: signInExperience.schema.parse({ signInMode: 'Register' }) }
    expect(step(basic, require('mfa'), closed)).toMatchObject({
      ...{ step: 'blocked', reasons: ['required', 'out_of_reach'] },
    })
  })
})

describe('adding a factor', () => {
  const at = (policy: string, rest: object = {}) =>
    next({ settings: withMfa(['Totp', 'BackupCode'], policy), proofs: [password], person, ...rest })

  test.each([
    ['PromptAtSignInAndSignUp', 'enrol'],
    ['PromptOnlyAtSignIn', 'enrol'],
    ['NoPrompt', 'done'],
    ['Mandatory', 'done'],
  ])('under %s, where no rule demands it: %s', (policy, expected) => {
    expect(at(policy).step).toBe(expected)
  })

  test('is skipped where that is the person’s choice, and never where it is demanded', () => {
    expect(at('PromptOnlyAtSignIn', { state: { skipsMfa: true } }).step).toBe('done')
    expect(at('PromptOnlyAtSignIn', holding({ hasSkippedMfa: true })).step).toBe('done')
    const demanded = at('Mandatory', {
      ...require('mfa', 'enrol'),
      state: { skipsMfa: true },
      ...holding({ hasSkippedMfa: true }),
    })
    expect(demanded).toMatchObject({ step: 'enrol', options: { factors: ['Totp'], isSkippable: false } })
  })

  test('brings backup codes along under Mandatory, and only there', () => {
    const bound = { ...require('mfa', 'enrol'), proofs: [password, proof('totp', 'bind')] }
    expect(at('Mandatory', bound)).toMatchObject({ step: 'enrol', reasons: ['backup_codes'] })
    expect(at('Mandatory', { ...bound, proofs: [...bound.proofs, proof('backup_code', 'bind')] }).step).toBe('done')
    expect(at('PromptOnlyAtSignIn', bound).step).toBe('done')
    expect(next({ ...bound, settings: withMfa(['Totp'], 'Mandatory'), person }).step).toBe('done')
  })

  test('is no way out where no factor is enabled', () => {
    expect(next({ settings: withMfa([], 'Mandatory'), proofs: [password], person }).step).toBe('done')
    expect(next({ settings: withMfa([], 'Mandatory'), proofs: [password], person, ...require('enrol') })).toMatchObject(
      {
        ...{ step: 'blocked', reasons: ['required', 'out_of_reach'] },
      },
    )
  })
})

describe('a passkey for next time', () => {
  const on = signInExperience.schema.parse({ passkeySignIn: { enabled: true } })
  const withFactors = (...factors: string[]) => withMfa(factors, 'NoPrompt', { passkeySignIn: { enabled: true } })
  const offered = (situation: Parameters<typeof next>[0] = {}) =>
    next({ settings: on, proofs: [password], person, state: { makesPasskeys: true }, ...situation })
  const offer = (isConditional: boolean) => ({
    step: 'passkey',
    reasons: ['suggested'],
    options: { isSkippable: true, isConditional },
  })

  test.each<[string, Parameters<typeof next>[0], boolean]>([
    ['by password, which a password manager may have filled in', {}, true],
    ['by code', { proofs: [proof('email_code', 'sign_in', mailed)] }, false],
    ['by one-time token', { proofs: [proof('one_time_token', 'sign_in')] }, false],
    ['in a browser where somebody else was signed in', { session: { ...session, userId: 'bob' } }, true],
    ['where it becomes a second factor', { settings: withFactors('WebAuthn') }, false],
    ['with a second factor', { settings: withFactors('Totp'), proofs: [password, proof('totp', 'mfa')] }, false],
  ])('is offered to whoever signs in %s', (_how, situation, isConditional) => {
    expect(offered(situation)).toEqual(offer(isConditional))
  })

  test.each<[string, Parameters<typeof next>[0]]>([
    ['the settings have no passkeys', { settings }],
    ['the browser cannot make one', { state: {} }],
    ['there is one', holding({ passkeys: 1 })],
    ['one was bound just now', { proofs: [password, proof('passkey', 'bind')] }],
    ['the person has just added something else', { proofs: [password, proof('totp', 'bind')] }],
    ['it is not wanted now', { state: { makesPasskeys: true, skipsPasskey: true } }],
    ['it was not wanted lately', holding({ hasSkippedPasskey: true })],
    ['a second factor was put off a moment ago', { state: { makesPasskeys: true, skipsMfa: true } }],
    [
      'there is a second factor that was not asked for',
      { settings: withFactors('Totp'), ...holding({ hasTotp: true }) },
    ],
    ['the person has a session and proves it again', { session, request: { prompts: ['login'] } }],
  ])('is not offered where %s', (_why, situation) => {
    expect(offered(situation).step).toBe('done')
  })

  test('is not offered to whoever goes on with a session, registers, or sets another password', () => {
    expect(offered({ session, proofs: [], person: undefined }).step).toBe('done')
    const staged = { username: 'ada', password: { digest: 'x', algorithm: 'Argon2id' as const } }
    const registering = { event: 'Register' as const, staged, proofs: [] }
    expect(offered({ ...registering, person: { ...person, id: '' } }).step).toBe('done')
    const resetting = { event: 'ForgotPassword' as const, staged }
    expect(offered({ ...resetting, proofs: [proof('email_code', 'reset', mailed)] }).step).toBe('done')
  })

  test('comes after what is demanded, and before what is agreed to', () => {
    expect(offered({ settings: withFactors('Totp'), ...require('mfa', 'enrol') }).step).toBe('enrol')
    const terms = { termsOfUseUrl: 'https://example.test/terms', agreeToTermsPolicy: 'Manual' as const }
    expect(offered({ settings: { ...on, ...terms } }).step).toBe('passkey')
    const skipped = { makesPasskeys: true, skipsPasskey: true }
    expect(offered({ settings: { ...on, ...terms }, state: skipped }).step).toBe('terms')
  })
})

describe('whoever is proven', () => {
  const manual = { termsOfUseUrl: 'https://example.test/terms' }
  test.each<[string, Parameters<typeof next>[0], string]>([
    [
      'agrees to the terms',
      { settings: signInExperience.schema.parse({ ...manual, agreeToTermsPolicy: 'Manual' }) },
      'terms',
    ],
    [
      'agreed',
      { settings: signInExperience.schema.parse({ ...manual, agreeToTermsPolicy: 'Manual' }), state: { terms: true } },
      'done',
    ],
    [
      'agreed when registering',
      { settings: signInExperience.schema.parse({ ...manual, agreeToTermsPolicy: 'ManualRegistrationOnly' }) },
      'done',
    ],
    ['replaces an expired password', holding({ isPasswordExpired: true }), 'new_password'],
    [
      'has replaced it',
      { ...holding({ isPasswordExpired: true }), staged: { password: { digest: 'x', algorithm: 'Argon2id' } } },
      'done',
    ],
    ['is tested', require('captcha'), 'captcha'],
    ['was tested', { ...require('captcha'), state: { captcha: true } }, 'done'],
    [
      'is refused by the rules',
      { decision: { allow: false, reason: 'no', require: [], session: {} } as never },
      'blocked',
    ],
    ['is suspended', holding({ isSuspended: true }), 'blocked'],
    ['may not sign in at all', { settings: signInExperience.schema.parse({ signInMode: 'Register' }) }, 'blocked'],
    [
      'lacks an address',
      { settings: signInExperience.schema.parse({ signUp: { identifiers: ['email'], password: true, verify: true } }) },
      'profile',
    ],
  ])('%s', (_, rest, expected) => {
    expect(next({ person, ...rest, proofs: [password] }).step).toBe(expected)
  })

  test('is told of a suspension only after everything is proven', () => {
    const suspended = {
      settings: withMfa(['Totp']),
      ...holding({ isSuspended: true, hasTotp: true }),
      ...require('mfa'),
    }
    expect(next({ ...suspended, proofs: [password] }).step).toBe('mfa')
    expect(next({ ...suspended, proofs: [password, proof('totp', 'mfa')] })).toMatchObject({
      ...{ step: 'blocked', reasons: ['user_suspended'] },
    })
  })

  test('does not replace an expired password that was not the way in', () => {
    const byMail = proof('email_code', 'sign_in', mailed)
    expect(next({ ...holding({ isPasswordExpired: true }), proofs: [byMail] }).step).toBe('done')
  })
})

describe('registering', () => {
  const staged = { username: 'ada', password: { digest: 'x', algorithm: 'Argon2id' as const } }
  const email = proof('email_code', 'register', { userId: null, ...mailed })
  const phone = proof('phone_code', 'register', { userId: null, identifier: { type: 'phone', value: '61412345678' } })
  const identity = {
    ...{ connectorId: 'acme', kind: 'social' as const, target: 'acme', subject: 'ada', raw: {}, syncProfile: false },
  } as const
  const elsewhere: Proof = {
    ...{ id: 'elsewhere', kind: 'federated', purpose: 'register', userId: null, data: { federated: identity } },
  }
  const stepFor = (
    identifiers: string[],
    {
      password: asksPassword = false,
      ...rest
    }: { password?: boolean; staged?: Situation['staged']; proofs?: Proof[] } = {},
  ) =>
    next({
      event: 'Register',
      settings: signInExperience.schema.parse({ signUp: { identifiers, password: asksPassword, verify: true } }),
      ...rest,
    })

  test.each<[string[], Parameters<typeof stepFor>[1], readonly string[]]>([
    [['username'], {}, ['username']],
    [['email'], {}, ['email']],
    [['phone'], {}, ['phone']],
    [['email', 'phone'], {}, ['emailOrPhone']],
    [['username'], { password: true }, ['username', 'password']],
    [['username'], { password: true, staged: { username: 'ada' } }, ['password']],
    [['email'], { password: true, proofs: [email] }, ['password']],
    // Nobody begins with nothing at all.
    [[], {}, []],
  ])('with %j and %j lacks %j', (identifiers, rest, missing) => {
    expect(stepFor(identifiers, rest)).toMatchObject({ step: 'register', options: { missing } })
  })

  test.each<[string[], Parameters<typeof stepFor>[1]]>([
    [['username'], { password: true, staged }],
    [['email'], { proofs: [email] }],
    [['phone'], { proofs: [phone] }],
    [['email', 'phone'], { proofs: [phone] }],
    [['email', 'phone'], { proofs: [email] }],
    [[], { proofs: [elsewhere] }],
    // An identity at a provider takes the place of a password.
    [['email'], { password: true, proofs: [email, elsewhere] }],
  ])('with %j and %j lacks nothing', (identifiers, rest) => {
    expect(stepFor(identifiers, rest).step).toBe('done')
  })

  test('takes no address that was proven for something else', () => {
    const other = { ...email, purpose: 'sign_in' as const }
    expect(stepFor(['email'], { proofs: [other] }).step).toBe('register')
    expect(stepFor(['email'], { proofs: [{ ...email, purpose: 'reset' as const }] }).step).toBe('register')
  })

  test('is closed where people only sign in, and never becomes whom the client expects', () => {
    expect(
      next({ event: 'Register', settings: signInExperience.schema.parse({ signInMode: 'SignIn' }), staged }),
    ).toMatchObject({
      ...{ step: 'blocked', reasons: ['create', 'out_of_reach'] },
    })
    expect(next({ event: 'Register', staged, request: { expectedUserId: 'ada' } }).step).toBe('denied')
  })
})

describe('resetting a password', () => {
  const staged = { password: { digest: 'x', algorithm: 'Argon2id' as const } }
  const reset = (rest: object) => next({ event: 'ForgotPassword', ...rest }).step
  test('takes a proof of its own, of somebody, and a password', () => {
    expect(reset({ staged })).toBe('reset')
    expect(reset({ staged, proofs: [proof('email_code', 'sign_in', mailed)] })).toBe('reset')
    expect(reset({ staged, proofs: [proof('email_code', 'reset', { ...mailed, userId: null })] })).toBe('reset')
    expect(reset({ proofs: [proof('email_code', 'reset', mailed)] })).toBe('new_password')
    expect(reset({ staged, proofs: [proof('email_code', 'reset', mailed)] })).toBe('done')
  })
})

/** The same sequence each time, so that what fails fails again. */
const randomFrom = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

test('nothing is done before everything is there that settings, rules and client ask for, whatever comes together', () => {
  const random = randomFrom(20)
  const maybe = (odds = 0.5) => random() < odds
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  const some = <Item>(items: readonly Item[], odds = 0.4) => items.filter(() => maybe(odds))
  const kindOf: Readonly<Record<MfaFactor, ProofKindName>> = {
    ...{ WebAuthn: 'passkey', Totp: 'totp', BackupCode: 'backup_code' },
    ...{ EmailVerificationCode: 'email_code', PhoneVerificationCode: 'phone_code' },
  }
  const factorNames = Object.keys(kindOf) as MfaFactor[]
  // Written anew, so that a mistake there is none here.
  const sort: Record<ProofKindName, string> = {
    ...{ password: 'knows', email_code: 'mail', one_time_token: 'mail', phone_code: 'phone' },
    ...{ passkey: 'device', totp: 'device', backup_code: 'paper', federated: 'elsewhere' },
  }
  const strength = (kinds: readonly ProofKindName[]) =>
    kinds.includes('passkey') ? 2 : new Set(kinds.map((kind) => sort[kind])).size > 1 ? 1 : 0

  let done = 0
  for (let round = 0; round < 60_000; round++) {
    const event = pick(['SignIn', 'SignIn', 'SignIn', 'Register', 'ForgotPassword'] as const)
    const factors = some(factorNames, 0.6)
    const policy = pick(['Mandatory', 'PromptOnlyAtSignIn', 'PromptAtSignInAndSignUp', 'NoPrompt'])
    const settings = signInExperience.schema.parse({
      ...{
        signInMode: pick(['SignInAndRegister', 'SignInAndRegister', 'SignIn', 'Register']),
        mfa: { factors, policy },
      },
      signUp: { identifiers: some(['username', 'email', 'phone'], 0.2), password: maybe(0.3), verify: true },
      ...(maybe(0.3) && { termsOfUseUrl: 'https://example.test/terms' }),
      agreeToTermsPolicy: pick(['Automatic', 'Manual', 'ManualRegistrationOnly']),
      passkeySignIn: { enabled: true },
    })
    // All are of one person, or of nobody.
    const userId = maybe(0.9) ? 'ada' : null
    const firsts = some(
      ['password', 'email_code', 'phone_code', 'passkey', 'one_time_token', 'federated'] as const,
      0.25,
    ).map((kind) => proof(kind, 'sign_in', { userId }))
    const proofs = [
      ...firsts,
      ...some(factorNames, 0.25).map((name) => proof(kindOf[name], 'mfa')),
      ...some(factorNames, 0.2).map((name) => proof(kindOf[name], 'bind')),
      ...(maybe(0.3) ? [proof('email_code', event === 'Register' ? 'register' : 'reset', mailed)] : []),
    ].filter(
      (one) => event === 'SignIn' || (event === 'Register' ? one.purpose !== 'mfa' && one.purpose !== 'sign_in' : true),
    )
    const proven = proofs.find(({ purpose, userId }) => purpose === 'sign_in' && userId !== null)
    const facts: PersonFacts = {
      ...{ id: 'ada', isSuspended: maybe(0.1), hasPassword: maybe(0.7), isPasswordExpired: maybe(0.2) },
      ...{
        hasUsername: maybe(),
        hasIdentity: maybe(0.2),
        hasEmail: maybe(),
        hasPhone: maybe(),
        hasTotp: maybe(),
        passkeys: maybe() ? 1 : 0,
      },
      ...{
        backupCodes: maybe() ? 5 : 0,
        hasSkippedMfa: maybe(0.2),
        hasSkippedPasskey: maybe(0.2),
        mfaOrganizations: [],
      },
    }
    const nobody = { hasTotp: false, passkeys: 0, backupCodes: 0, hasEmail: false, hasPhone: false, hasPassword: false }
    const someone =
      event === 'Register'
        ? { ...facts, id: '', ...nobody, isSuspended: false, isPasswordExpired: false, hasUsername: false }
        : proven || event === 'ForgotPassword'
          ? facts
          : undefined
    const demands = some(['mfa', 'phr', 'enrol', 'captcha'] as const, 0.25)
    const client = { type: 'SPA' as const, isThirdParty: maybe(0.3) }
    const known = maybe() ? { ...session, userId: pick(['ada', 'bob']), acr: pick(acrs) } : undefined
    const situation: Situation = {
      ...{ event, settings, client, proofs, person: someone },
      request: {
        ...request,
        prompts: some(['login', 'select_account', 'consent'] as const, 0.1),
        acrValues: some([basic, multiFactor, strongest], 0.2),
        ...(maybe(0.2) && { maxAge: pick([0, 50, 200]) }),
        ...(maybe(0.1) && { expectedUserId: pick(['ada', 'bob']) }),
      },
      session: known,
      staged: {
        ...(maybe() && { username: 'ada' }),
        ...(maybe() && { password: { digest: 'x', algorithm: 'Argon2id' as const } }),
      },
      decision:
        (someone && event !== 'ForgotPassword') || (known && event === 'SignIn')
          ? { allow: maybe(0.9), require: demands, session: {} }
          : undefined,
      consent: maybe() ? { scopes: ['openid'], resources: {}, organizations: [] } : undefined,
      state: {
        ...(maybe(0.05) && { isCancelled: true }),
        ...(maybe() && { terms: true }),
        ...(maybe() && { captcha: true }),
        ...(maybe(0.3) && { skipsMfa: true }),
        ...(maybe() && { makesPasskeys: true }),
        ...(maybe(0.2) && { skipsPasskey: true }),
        ...(maybe(0.2) && { account: pick([false as const, { sessionId: 'session' }, { sessionId: 'other' }]) }),
        ...(maybe(0.4) && {
          consent: { userId: pick(['ada', 'bob', newPerson]), isAllowed: maybe(0.8), organizationIds: [] },
        }),
      },
    }
    if (nextStep(situation).step !== 'done') continue
    done++
    const { state, staged, request: asked, decision } = situation
    const wrong: string[] = []
    const must = (holds: boolean, what: string) => void (holds || wrong.push(what))
    const has = (kind: ProofKindName, purpose: Proof['purpose']) =>
      proofs.some((one) => one.kind === kind && one.purpose === purpose)
    const proves = (purpose: Proof['purpose']) => proofs.some((one) => one.purpose === purpose && one.userId !== null)
    must(state.isCancelled !== true, 'cancelled')
    if (event === 'ForgotPassword') {
      must(proves('reset'), 'reset proof')
      must(staged.password !== undefined, 'new password')
    } else {
      const isNew = event === 'Register'
      const who = isNew ? newPerson : (proven?.userId ?? situation.session?.userId)
      must(who !== undefined, 'somebody')
      must(asked.expectedUserId === undefined || asked.expectedUserId === who, 'expected')
      if (isNew || proven) {
        must(settings.signInMode !== (isNew ? 'SignIn' : 'Register'), 'mode')
        must(decision?.allow !== false, 'allowed')
        // A code that was mailed, or a provider, takes the place of the test.
        const isMailed = proofs.some(
          ({ kind, purpose }) => ['email_code', 'federated'].includes(kind) && purposesOf[event].includes(purpose),
        )
        must(!decision?.require.includes('captcha') || state.captcha === true || isMailed, 'captcha')
        const holds: Record<MfaFactor, boolean> = {
          ...{ WebAuthn: someone!.passkeys > 0, Totp: someone!.hasTotp, BackupCode: someone!.backupCodes > 0 },
          ...{ EmailVerificationCode: someone!.hasEmail, PhoneVerificationCode: someone!.hasPhone },
        }
        const shown = proven
          ? [proven.kind, ...proofs.filter(({ purpose }) => purpose === 'mfa').map(({ kind }) => kind)]
          : []
        const usable = factors.filter((name) => holds[name]).map((name) => kindOf[name])
        const reach = (wanted: number) => usable.some((kind) => strength([...shown, kind]) >= wanted)
        const wants = Math.max(
          ...(decision?.require ?? []).map((name) => ({ phr: 2, mfa: 1, enrol: 0, captcha: 0 })[name]),
          0,
        )
        for (let wanted = wants; proven && wanted > 0; wanted--)
          must(strength(shown) >= wanted || !reach(wanted), `acr ${wanted}`)
        const isDemanded = decision!.require.some((name) => name !== 'captcha')
        const counts = factors.filter((name) => (wants === 2 ? name === 'WebAuthn' : name !== 'BackupCode'))
        if (isDemanded)
          must(
            counts.some((name) => holds[name] || has(kindOf[name], 'bind')),
            'a factor',
          )
        if (wants > 0)
          must(strength(shown) >= wants || counts.some((name) => has(kindOf[name], 'bind')), 'or a new one')
        // Who has a second factor, and was not asked for it, adds none.
        const holdsBack =
          proven !== undefined &&
          strength(shown) < 1 &&
          factors.some((name) => name !== 'BackupCode' && holds[name] && strength([proven.kind, kindOf[name]]) >= 1)
        if (isDemanded && policy === 'Mandatory' && factors.includes('BackupCode') && !holdsBack)
          must(holds.BackupCode || has('backup_code', 'bind'), 'backup codes')
        must(isNew || !someone!.isSuspended, 'not suspended')
        must(
          !someone!.isPasswordExpired || proven?.kind !== 'password' || staged.password !== undefined,
          'fresh password',
        )
        const { identifiers } = settings.signUp
        const proves = (type: string) =>
          proofs.some(({ purpose, data }) => /register|bind/.test(purpose) && data.identifier?.type === type)
        const either = identifiers.includes('email') && identifiers.includes('phone')
        const [email, phone] = [someone!.hasEmail || proves('email'), someone!.hasPhone || proves('phone')]
        must(!either || email || phone, 'an address')
        must(either || !identifiers.includes('email') || email, 'email')
        must(either || !identifiers.includes('phone') || phone, 'phone')
        must(!isNew || !identifiers.includes('username') || staged.username !== undefined, 'username')
        must(!isNew || !settings.signUp.password || staged.password !== undefined || someone!.hasIdentity, 'password')
        const { agreeToTermsPolicy, termsOfUseUrl } = settings
        const asksTerms = agreeToTermsPolicy === 'Manual' || (isNew && agreeToTermsPolicy === 'ManualRegistrationOnly')
        const putOff = state.skipsPasskey || state.skipsMfa || someone!.hasSkippedPasskey || someone!.passkeys > 0
        const isInTheMiddle = situation.session?.userId === 'ada'
        const isAdding = proofs.some(({ purpose }) => purpose === 'bind')
        const isOffered = proven && state.makesPasskeys && !isInTheMiddle && !isAdding && !putOff && !holdsBack
        must(!isOffered, 'a passkey offered')
        must(!asksTerms || termsOfUseUrl === null || state.terms === true, 'terms')
      } else {
        const { age, acr } = situation.session!
        must(decision?.allow !== false, 'a session that is allowed')
        must(!demands.includes('mfa') || acr !== basic, 'a session with two factors')
        must(!demands.includes('phr') || acr === strongest, 'a session by passkey')
        must(!asked.prompts.includes('login') && (asked.maxAge === undefined || age < asked.maxAge), 'fresh')
        must(state.account !== false, 'another account')
        const chosen = typeof state.account === 'object' && state.account.sessionId === 'session'
        must(!asked.prompts.includes('select_account') || chosen, 'chosen')
      }
      const said = state.consent?.userId === who ? state.consent : undefined
      const stored = situation.consent !== undefined && !asked.prompts.includes('consent')
      must(!client.isThirdParty || (said ? said.isAllowed : stored), 'consent')
    }
    expect(wrong, JSON.stringify(situation)).toEqual([])
  }
  expect(done).toBeGreaterThan(1_000)
})
