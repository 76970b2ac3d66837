import { Secret } from '../platform/secret.ts'
import type { Authenticator } from './authenticator.ts'
import { type Answer, type Browser, createBrowser, type Hop } from './browser.ts'
import { submissionOf } from './html-page.ts'
import { type SignedIn, signIn } from './sign-in.ts'
import { type ShownPage, SignInFailed, type SignInOptions } from './step.ts'
import { walkToEnd } from './walk-pages.ts'

/** An application that people sign in to, and what it asks for. */
export interface TestApplication {
  clientId: string
  /** Of one that keeps a secret. */
  clientSecret?: string | undefined
  /** Registered; it is only compared, never called. */
  redirectUri: string
  /** Default: `openid profile`. */
  scope?: string | undefined
  /** The token is for the first. */
  resources?: readonly string[] | undefined
  /** More of the authorization request: `prompt`, `max_age`, `acr_values`, `login_hint`. */
  parameters?: Readonly<Record<string, string | undefined>> | undefined
}

/** Somebody, and what they can prove. What a page asks for and is not here ends the sign-in. */
export interface TestPerson {
  /** User name, e-mail address or telephone number. */
  user: string
  password?: string | undefined
  /** Of an authenticator app, in base32. */
  totpSecret?: string | undefined
  /** The next code that comes by message; see `codesFrom`. */
  nextCode?: (() => Promise<string>) | undefined
  /** With passkeys, or for new ones: see `createAuthenticator`. It is used wherever a page offers it. */
  authenticator?: Authenticator | undefined
  /** Allows what applications ask for, and agrees to terms. Default true. */
  consents?: boolean | undefined
}

/** One browser of one person: cookies stay, so the second application needs no password. */
export interface TestBrowser {
  /** From the authorization request to verified tokens. Throws `SignInFailed`, which says on which page it ended. */
  signIn(application: TestApplication, person: TestPerson): Promise<SignedIn>
  /** Enters the code of a device (RFC 8628), signs in and allows it. The page that says so. */
  allowDevice(userCode: string, person: TestPerson): Promise<ShownPage>
  /** A page of the issuer, redirects followed as far as they stay there. */
  open(path: string): Promise<Answer>
  /** Every request so far; nothing in it is a secret. */
  hops: readonly Hop[]
}

/** Redirects in a row. */
const mostRedirects = 10

/** `issuer` as discovery says it: `https://id.example.com/oidc`. */
export const createTestBrowser = ({ issuer }: { issuer: string }): TestBrowser => {
  const hops: Hop[] = []
  const browser = createBrowser({ onHop: (hop) => hops.push(hop) })
  const issuerUrl = new URL(issuer)

  const open = async (path: string): Promise<Answer> => {
    let answer = await browser.open(new URL(path, issuerUrl))
    for (let left = mostRedirects; left > 0; left--) {
      const { location } = answer
      if (location?.origin !== issuerUrl.origin) return answer
      answer = await browser.open(location)
    }
    throw new SignInFailed(`More than ${mostRedirects} redirects from ${path}.`)
  }

  return {
    hops,
    open,
    signIn: (application, person) => signIn(optionsOf(issuerUrl, browser, application, person)),
    async allowDevice(userCode, person) {
      const nowhere = { clientId: '', redirectUri: 'about:blank' }
      const entry = await open('/device')
      const form = entry.page?.forms.find(({ fields }) => fields.some(({ name }) => name === 'user_code'))
      if (!form) throw new SignInFailed('The issuer has no page for the codes of devices.')
      const entered = await browser.submit(entry.url, submissionOf(form, { values: { user_code: userCode } }))
      return walkToEnd(optionsOf(issuerUrl, browser, nowhere, person), entered)
    },
  }
}

const optionsOf = (
  issuer: URL,
  browser: Browser,
  application: TestApplication,
  { user, password, totpSecret, nextCode, authenticator, consents = true }: TestPerson,
): SignInOptions => {
  const { clientId, clientSecret, redirectUri, scope = 'openid profile', resources = [], parameters = {} } = application
  const secret = (text: string | undefined) => (text === undefined ? undefined : new Secret(text))
  return {
    ...{ issuer, browser, clientId, redirectUri, scope, resources, parameters, user, nextCode, authenticator },
    clientSecret: secret(clientSecret),
    password: secret(password),
    totpSecret: secret(totpSecret),
    consent: consents,
  }
}
