import * as pages from '../../issuer/pages/index.ts'

/** What a page may hold, with as much as is usual: names, scopes, a logo of none. A new page gets a line here. */
const client = { name: 'Acme Order Management' }
const account = { name: 'Ada Lovelace', identifier: 'ada.lovelace@example.com' }
const form = { client, action: '/sign-in/abcdefghijklmnopqrstu', csrf: 'x'.repeat(64) }

type Example = (locale: pages.Locale) => pages.Page

export const pageExamples: Readonly<Record<string, Example>> = {
  signInPage: (locale) =>
    pages.signInPage({
      ...{ ...form, locale, identifier: account.identifier, keep: true, canCancel: true },
      error: 'invalid_credentials',
    }),
  selectAccountPage: (locale) => pages.selectAccountPage({ ...form, locale, account }),
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

/** Pages that nobody has written an example of. */
export const pagesWithoutExample = (): string[] =>
  Object.keys(pages).filter((name) => /^(?!send).+Page$/.test(name) && pageExamples[name] === undefined)
