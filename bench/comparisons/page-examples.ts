import { newBackupCodes, newTotpSecret, qrPicture, totpUri } from '../../issuer/directory/users/factors/index.ts'
import * as pages from '../../issuer/pages/index.ts'

/** What a page may hold, with as much as is usual: names, scopes, a logo of none. A new page gets a line here. */
const client = { name: 'Acme Order Management' }
const account = { name: 'Ada Lovelace', identifier: 'ada.lovelace@example.com' }
const form = { client, action: '/sign-in/abcdefghijklmnopqrstu', csrf: 'x'.repeat(64) }

const challenge = { challenge: 'x'.repeat(43), rpId: 'id.example.com', allowCredentials: [], timeout: 300_000 }
const everyFactor = ['passkey', 'totp', 'phone_code', 'email_code', 'backup_code'] as const

/** An authenticator app is set up: with a picture to scan. */
const authenticatorApp = (): pages.NewFactor => {
  const secret = newTotpSecret()
  const uri = totpUri({ issuer: 'id.example.com', account: account.identifier, secret })
  return { kind: 'totp', proofId: 'x'.repeat(21), secret, uri, picture: qrPicture(uri) }
}

const enrol = (locale: pages.Locale, setUp: pages.NewFactor) =>
  pages.enrolPage({ ...form, locale, isRequired: false, isSkippable: true, hasChoice: true, setUp })

type Example = (locale: pages.Locale) => pages.Page

export const pageExamples: Readonly<Record<string, Example>> = {
  signInPage: (locale) =>
    pages.signInPage({
      ...{ ...form, locale, identifier: account.identifier, keep: true, canCancel: true },
      ...{ byCode: ['email', 'phone'], canRegister: true, canReset: true },
      passkey: { proofId: 'x'.repeat(21), options: challenge, hasButton: true, isConditional: true },
      error: 'invalid_credentials',
    }),
  addressPage: (locale) =>
    pages.addressPage({ ...form, locale, purpose: 'register', types: ['email', 'phone'], canSignIn: true }),
  codePage: (locale) =>
    pages.codePage({
      ...{ ...form, locale, type: 'email', address: account.identifier, isOnlyForAccounts: true },
      ...{ minutesGood: 10, isAnother: true, error: 'code_wrong' },
    }),
  detailsPage: (locale) =>
    pages.detailsPage({
      ...{ ...form, locale, purpose: 'register', asksUsername: true, passwordLength: 8, canSignIn: true },
      errors: { username: 'taken', password: { issues: [{ code: 'too_short', interpolation: { min: 8 } }] } },
    }),
  secondFactorPage: (locale) =>
    pages.secondFactorPage({
      ...{ ...form, locale, account, others: everyFactor.slice(1) },
      asked: { kind: 'passkey', proofId: 'x'.repeat(21), options: challenge },
    }),
  enrolPage: (locale) => enrol(locale, authenticatorApp()),
  'enrolPage, of the choice': (locale) => enrol(locale, { kind: 'choice', factors: everyFactor }),
  'enrolPage, of backup codes': (locale) =>
    enrol(locale, { kind: 'backup_code', proofId: 'x'.repeat(21), codes: newBackupCodes() }),
  passkeyOfferPage: (locale) =>
    pages.passkeyOfferPage({
      ...{ ...form, locale, proofId: 'x'.repeat(21), options: challenge },
      ...{ isConditional: true, isSecondFactor: true, isFailed: true },
    }),
  termsPage: (locale) =>
    pages.termsPage({
      ...{ ...form, locale },
      ...{ termsOfUse: 'https://example.com/terms', privacyPolicy: 'https://example.com/privacy' },
    }),
  captchaPage: (locale) =>
    pages.captchaPage({
      ...{ ...form, locale, address: account.identifier, isSent: false },
      test: { provider: 'proof_of_work', difficulty: 17, challenge: 'x'.repeat(120) },
    }),
  noAccountPage: (locale) => pages.noAccountPage({ ...form, locale, type: 'email', address: account.identifier }),
  blockedPage: (locale) =>
    pages.blockedPage({
      ...{ ...form, locale, reason: 'user_suspended', requestId: 'x'.repeat(21), other: 'another' },
      wayOn: 'https://app.example.com/',
    }),
  selectAccountPage: (locale) => pages.selectAccountPage({ ...form, locale, account }),
  devicePage: (locale) =>
    pages.devicePage({ ...form, locale, userCode: 'WDJB-MJHT', isFromLink: false, error: 'wrong' }),
  deviceDonePage: (locale) => pages.deviceDonePage({ locale, client, isAllowed: true }),
  consentPage: (locale) =>
    pages.consentPage({
      ...{ ...form, locale, account },
      scopes: ['openid', 'profile', 'email', 'phone', 'offline_access'].map((name) => ({ name })),
      resources: ['Orders', 'Invoices', 'Stock'].map((name) => ({
        name,
        scopes: ['read', 'write', 'delete'].map((verb) => ({
          name: `${verb}:${name.toLowerCase()}`,
          description: `May ${verb} ${name.toLowerCase()} in your name`,
        })),
      })),
      organizations: Array.from({ length: 10 }, (_, n) => ({ id: `organization${n}`, name: `Organization ${n}` })),
      redirectHost: 'app.example.com',
    }),
  errorPage: (locale) => pages.errorPage({ locale, problem: 'expired', requestId: 'x'.repeat(21), client }),
  finishedPage: (locale) => pages.finishedPage({ locale, client, wayOn: 'https://app.example.com/' }),
  formPostPage: (locale) =>
    pages.formPostPage({ locale, action: 'https://app.example.com/callback', fields: { code: 'x'.repeat(43) } }),
  logoutPage: (locale) => pages.logoutPage({ ...form, locale, account }),
  signedOutPage: (locale) => pages.signedOutPage({ locale, client }),
}

/** What no page can be less than. */
export const oneLine = 'one-line'
export const oneLinePage = '<!doctype html><title>Sign in</title><p>Sign in</p>'

/** Pages that nobody has written an example of. */
export const pagesWithoutExample = (): string[] =>
  Object.keys(pages).filter((name) => /^(?!send).+Page$/.test(name) && pageExamples[name] === undefined)
