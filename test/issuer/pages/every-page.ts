import { qrPicture, totpUri } from '../../../issuer/directory/users/factors/index.ts'
import {
  type AddressError,
  type AskedFactor,
  addressPage,
  blockedPage,
  blockNames,
  type CaptchaError,
  type CodeError,
  captchaPage,
  codePage,
  consentPage,
  detailsPage,
  deviceDonePage,
  devicePage,
  type EnrolError,
  enrolPage,
  errorPage,
  type FactorError,
  finishedPage,
  formPostPage,
  type Locale,
  logoutPage,
  type NewFactor,
  noAccountPage,
  type Page,
  type PageProblem,
  passkeyOfferPage,
  type SignInError,
  secondFactorPage,
  selectAccountPage,
  signedOutPage,
  signInPage,
  termsPage,
} from '../../../issuer/pages/index.ts'

export const signInErrors: readonly SignInError[] = [
  'invalid_credentials',
  'locked',
  'identifier_missing',
  'password_missing',
  'too_long',
  'too_many_requests',
  'address_missing',
  'code_limited',
  'code_unavailable',
  'code_over',
  'passkey_failed',
  'captcha_failed',
  'captcha_unavailable',
]

const codeErrors: readonly (CodeError | undefined)[] = [
  undefined,
  'code_missing',
  'code_wrong',
  'code_limited',
  'code_too_soon',
  'code_unavailable',
  'locked',
  'too_many_requests',
]

const addressErrors: readonly (AddressError | undefined)[] = [
  undefined,
  'address_missing',
  'email_taken',
  'phone_taken',
  'code_limited',
  'code_unavailable',
  'code_over',
  'captcha_failed',
  'captcha_unavailable',
]

export const passwordIssues = [
  { code: 'password_rejected.too_short', interpolation: { min: 12 } },
  { code: 'password_rejected.too_long', interpolation: { max: 256 } },
  { code: 'password_rejected.character_types', interpolation: { min: 3 } },
  { code: 'password_rejected.pwned' },
  { code: 'password_rejected.restricted.repetition' },
  { code: 'password_rejected.restricted.sequence' },
  { code: 'password_rejected.restricted.user_info' },
  { code: 'password_rejected.restricted.words' },
]

export const problems: readonly PageProblem[] = [
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'invalid_request_uri',
  'invalid_redirect_uri',
  'invalid_post_logout_redirect_uri',
  'invalid_id_token_hint',
  'expired',
  'other_browser',
  'invalid_form',
  'no_sign_in',
  'not_found',
  'too_many_requests',
  'application_unavailable',
  'access_denied',
  'user_suspended',
  'factor_locked',
  'server_error',
  'temporarily_unavailable',
]

/** Every page there is, in every state that changes its words; `text` stands wherever somebody else's text may. */
export const everyPage = (locale: Locale, text = 'Acme'): Record<string, Page> => {
  const client = { name: text, logoUri: 'https://logos.example/acme.svg' }
  const form = { locale, action: '/sign-in/i1', csrf: 'csrf-value', client }
  const account = { name: text, identifier: text }
  const scopes = [
    'openid',
    'profile',
    'email',
    'phone',
    'address',
    'offline_access',
    'roles',
    'urn:logto:scope:organizations',
    'urn:logto:scope:organization_roles',
    'custom_data',
    'identities',
    text,
  ].map((name) => ({ name }))
  const signIn = { ...form, identifier: text, canCancel: true }
  return {
    signIn: signInPage(signIn),
    ...Object.fromEntries(
      signInErrors.flatMap((error) => [
        [`signIn ${error}`, signInPage({ ...signIn, error })],
        [`signIn ${error} minutes`, signInPage({ ...signIn, error, minutes: 15 })],
      ]),
    ),
    ...Object.fromEntries(
      (['login', 'max_age', 'acr'] as const).map((reasons) => [
        `signIn ${reasons}`,
        signInPage({ ...signIn, reasons, account: text }),
      ]),
    ),
    ...stepPages(form, text),
    ...factorPages(form, text),
    selectAccount: selectAccountPage({ ...form, account }),
    consent: consentPage({
      ...form,
      account: { name: text, identifier: `${text}!` },
      scopes,
      resources: [{ name: text, scopes: [{ name: 'read:orders', description: text }, { name: text }] }],
      organizations: [{ id: text, name: text }],
      redirectHost: text,
    }),
    ...devicePages(form, text),
    logout: logoutPage({ ...form, account }),
    logoutOfNobody: logoutPage({ locale, action: '/oidc/session/end/confirm', csrf: 'csrf-value' }),
    signedOut: signedOutPage({ locale, client, wayOn: 'https://app.example/' }),
    signedOutForGood: signedOutPage({ locale }),
    finished: finishedPage({ locale, client, wayOn: 'https://app.example/' }),
    finishedForGood: finishedPage({ locale }),
    ...Object.fromEntries(
      problems.map((problem) => [
        `error ${problem}`,
        errorPage({
          locale,
          problem,
          requestId: 'r1',
          client,
          value: text,
          wayOn: { href: '/a', kind: 'start_again' },
        }),
      ]),
    ),
    errorBack: errorPage({ locale, problem: 'expired', requestId: 'r1', wayOn: { href: '/a', kind: 'application' } }),
    formPost: formPostPage({ locale, action: 'https://app.example/callback', fields: { code: 'c1', state: text } }),
  }
}

type FormParts = Pick<Parameters<typeof codePage>[0], 'locale' | 'client' | 'action' | 'csrf'>

/** Those of steps beyond the password. */
const stepPages = (form: FormParts, text: string): Record<string, Page> => {
  const types = ['email', 'phone'] as const
  const named = <Name>(kind: string, names: readonly Name[], pageOf: (name: Name) => Page) =>
    names.map((name) => [`${kind} ${name ?? ''}`.trim(), pageOf(name)] as const)
  const passkey = {
    proofId: 'p1',
    options: { challenge: 'c1', rpId: 'localhost' },
    hasButton: true,
    isConditional: true,
  }
  const everyWay = {
    ...{ ...form, identifier: text, canCancel: true, canRegister: true, canReset: true, passkey },
    byCode: types,
  }
  const code = { ...form, address: text, minutesGood: 10, isAnother: false, isOnlyForAccounts: false }
  const address = { ...form, address: text, canSignIn: true }
  const captcha = { provider: 'proof_of_work', challenge: '1.abc', difficulty: 1 } as const
  const details = { ...form, username: text, account: text, passwordLength: 8, canSignIn: true }
  return Object.fromEntries([
    ['signIn every way', signInPage(everyWay)],
    ['signIn by code', signInPage({ ...everyWay, byPassword: false, identifiers: ['email'] })],
    ['signIn after reset', signInPage({ ...everyWay, isPasswordChanged: true })],
    ...types.flatMap((type) => [
      ...named(`code ${type}`, codeErrors, (error) => codePage({ ...code, type, error, minutes: 15 })),
      [`code ${type} for accounts`, codePage({ ...code, type, isOnlyForAccounts: true, isAnother: true })] as const,
      [`no account ${type}`, noAccountPage({ ...form, type, address: text })] as const,
    ]),
    ...(['register', 'reset', 'profile'] as const).flatMap((purpose) =>
      [[types[0]], [types[1]], types].flatMap((asked) => [
        ...named(`address ${purpose} ${asked}`, addressErrors, (error) =>
          addressPage({ ...address, purpose, types: asked, error }),
        ),
        ...named(`tested address ${purpose} ${asked}`, addressErrors, (error) =>
          addressPage({ ...address, purpose, types: asked, error, captcha }),
        ),
      ]),
    ),
    ...(['register', 'profile', 'reset', 'expired'] as const).flatMap((purpose) => [
      [`details ${purpose}`, detailsPage({ ...details, purpose, asksUsername: true })] as const,
      ...named(
        `details ${purpose} username`,
        ['missing', 'invalid', 'taken', 'too_many_requests'] as const,
        (username) => detailsPage({ ...details, purpose, asksUsername: true, errors: { username } }),
      ),
      ...named(`details ${purpose} password`, ['missing', 'same', 'too_long'] as const, (password) =>
        detailsPage({ ...details, purpose, asksUsername: false, errors: { password } }),
      ),
      [
        `details ${purpose} issues`,
        detailsPage({ ...details, purpose, asksUsername: true, errors: { password: { issues: passwordIssues } } }),
      ] as const,
    ]),
    ...blockNames.flatMap((reason) =>
      (['another', 'back'] as const).map((other) => [
        `blocked ${reason} ${other}`,
        blockedPage({ ...form, reason, other, requestId: 'r1', wayOn: 'https://app.example/' }),
      ]),
    ),
  ])
}

const factorErrors: readonly (FactorError | undefined)[] = [
  undefined,
  'missing',
  'wrong',
  'too_many_requests',
  'code_too_soon',
  'code_limited',
  'code_unavailable',
  'passkey',
]
const enrolErrors: readonly (EnrolError | undefined)[] = [
  ...factorErrors,
  'secret_new',
  'codes_new',
  'address_missing',
  'address_invalid',
  'address_taken',
  'captcha_failed',
  'captcha_unavailable',
]
const captchaErrors: readonly (CaptchaError | undefined)[] = [...factorErrors, 'failed', 'unavailable']

/** Those of devices that somebody signs in. */
const devicePages = (form: FormParts, text: string): Record<string, Page> => {
  const entry = { ...form, action: '/device', userCode: text, isFromLink: false }
  const confirmation = {
    ...form,
    ...{ account: { name: text, identifier: `${text}!` }, resources: [], organizations: [], redirectHost: '' },
    scopes: ['openid', 'offline_access'].map((name) => ({ name })),
  }
  return {
    device: devicePage({ ...entry, userCode: '' }),
    'device from link': devicePage({ ...entry, isFromLink: true }),
    ...Object.fromEntries(
      (['missing', 'wrong', 'too_many_requests'] as const).map((error) => [
        `device ${error}`,
        devicePage({ ...entry, error }),
      ]),
    ),
    ...Object.fromEntries(
      [true, false].flatMap((is) => [
        [
          `device consent${is ? '' : ' third'}`,
          consentPage({ ...confirmation, device: { isOurs: is, address: text, minutesAgo: 2 } }),
        ],
        [`device ${is ? 'allowed' : 'refused'}`, deviceDonePage({ ...form, isAllowed: is })],
      ]),
    ),
  }
}

/** Those of second factors, of terms and of the test for machines. */
const factorPages = (form: FormParts, text: string): Record<string, Page> => {
  const passkey = { proofId: 'p1', options: { challenge: 'c1' } }
  const asked: readonly AskedFactor[] = [
    { kind: 'totp' },
    { kind: 'backup_code' },
    { kind: 'email_code', address: text, isSent: false },
    { kind: 'phone_code', address: '+15555550123', isSent: true },
    { kind: 'passkey', ...passkey },
  ]
  const secret = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const uri = totpUri({ issuer: 'id.example.com', account: 'ada.lovelace.of.london@example.test', secret })
  const factors = ['passkey', 'totp', 'phone_code', 'email_code'] as const
  const kinds: readonly NewFactor[] = [
    { kind: 'choice', factors },
    {
      kind: 'totp',
      proofId: 'p1',
      secret,
      uri,
      picture: qrPicture(uri),
    },
    { kind: 'passkey', ...passkey },
    { kind: 'email_code', entered: text, sentTo: undefined },
    { kind: 'phone_code', entered: '', sentTo: text },
    { kind: 'backup_code', proofId: 'p1', codes: ['4WJ7K-Q2M9X', '0MP20-H059E'] },
  ]
  const account = { name: '', identifier: text }
  const enrol = { ...form, isRequired: true, isSkippable: false, hasChoice: true }
  const test = { provider: 'proof_of_work', challenge: '1.abc', difficulty: 1 } as const
  const captcha = { ...form, test, address: `${text}@example.test` }
  const terms = { ...form, termsOfUse: 'https://app.example/terms' }
  return Object.fromEntries([
    ...asked.flatMap((one) =>
      factorErrors.map((error) => [
        `mfa ${one.kind} ${error ?? ''}`.trim(),
        secondFactorPage({ ...form, account, asked: one, others: factors.filter((kind) => kind !== one.kind), error }),
      ]),
    ),
    ...kinds.flatMap((setUp) => [
      ...enrolErrors.map((error) => [
        `enrol ${setUp.kind} ${error ?? ''}`.trim(),
        enrolPage({ ...enrol, setUp, error }),
      ]),
      [`enrol ${setUp.kind} suggested`, enrolPage({ ...enrol, isRequired: false, isSkippable: true, setUp })],
    ]),
    ...enrolErrors.map((error) => [
      `tested enrol ${error ?? ''}`.trim(),
      enrolPage({ ...enrol, setUp: { kind: 'phone_code', entered: text, sentTo: undefined }, captcha: test, error }),
    ]),
    ...captchaErrors.flatMap((error) => [
      [`captcha ${error ?? ''}`.trim(), captchaPage({ ...captcha, isSent: false, error })],
      [`captcha sent ${error ?? ''}`.trim(), captchaPage({ ...captcha, isSent: true, error })],
    ]),
    ...[true, false].flatMap((isSecondFactor) =>
      [true, false].map((isFailed) => [
        ['passkey offer', isSecondFactor && 'second', isFailed && 'failed'].filter(Boolean).join(' '),
        passkeyOfferPage({ ...form, ...passkey, isConditional: !isSecondFactor, isSecondFactor, isFailed }),
      ]),
    ),
    ['terms', termsPage({ ...terms, privacyPolicy: 'https://app.example/privacy' })],
    ['terms over http', termsPage({ ...terms, termsOfUse: 'http://app.example/terms' })],
  ])
}
