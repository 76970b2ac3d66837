import {
  consentPage,
  errorPage,
  finishedPage,
  formPostPage,
  type Locale,
  logoutPage,
  type Page,
  type PageProblem,
  type SignInError,
  selectAccountPage,
  signedOutPage,
  signInPage,
} from '../../../issuer/pages/index.ts'

export const signInErrors: readonly SignInError[] = [
  'invalid_credentials',
  'locked',
  'identifier_missing',
  'password_missing',
  'too_long',
  'too_many_requests',
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
    selectAccount: selectAccountPage({ ...form, account }),
    consent: consentPage({
      ...form,
      account: { name: text, identifier: `${text}!` },
      scopes,
      resources: [{ name: text, scopes: [{ name: 'read:orders', description: text }, { name: text }] }],
      organizations: [{ id: text, name: text }],
      redirectHost: text,
    }),
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
