import type { Secret } from '../platform/secret.ts'
import type { Browser } from './browser.ts'
import type { HtmlForm, HtmlPage } from './html-page.ts'

export interface SignInOptions {
  issuer: URL
  clientId: string
  /** Of a confidential application. */
  clientSecret: Secret | undefined
  redirectUri: string
  user: string
  password: Secret
  scope: string
  resources: readonly string[]
  /** More parameters of the authorization request: `prompt`, `max_age`, `acr_values`. */
  parameters: Readonly<Record<string, string | undefined>>
  /** Whether consent is given, and terms are agreed to, when it is asked for. */
  consent: boolean
  /** Of an authenticator app, in base32: codes are made of it. */
  totpSecret?: Secret | undefined
  /** The next code that comes by message. Undefined: none can be read here. */
  nextCode?: (() => Promise<string>) | undefined
  /** For pages that signing in does not have; they come before the others. */
  steps?: readonly Step[] | undefined
  browser: Browser
}

/** The sign-in was refused, or something of it is not as it should be. The message is for whoever runs the command. */
export class SignInFailed extends Error {
  override readonly name = 'SignInFailed'
}

/** What to do on a page. */
export interface Step {
  name: string
  knows(form: HtmlForm, options: SignInOptions): boolean
  fill(form: HtmlForm, page: HtmlPage, options: SignInOptions): URLSearchParams | Promise<URLSearchParams>
  /** Whether seeing it twice means that it was refused. */
  once: boolean
}

export const choice = ({ buttons }: HtmlForm, value: string) =>
  buttons.find((button) => button.name === 'choice' && button.value === value)
