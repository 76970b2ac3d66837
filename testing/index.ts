/**
 * `surrogate/testing`: a browser without a window, for integrators' own tests (docs/testing.md). It knows no test
 * runner.
 */
export { type Authenticator, type AuthenticatorOptions, createAuthenticator } from './authenticator.ts'
export { type Answer, type Hop, hopLine } from './browser.ts'
export type { HtmlForm, HtmlPage } from './html-page.ts'
export { codesFrom, type MessageCodes } from './message-codes.ts'
export type { SignedIn } from './sign-in.ts'
export { type ShownPage, SignInFailed } from './step.ts'
export { createTestBrowser, type TestApplication, type TestBrowser, type TestPerson } from './test-browser.ts'
export { createTestTime, type TestTime } from './time-store.ts'
export { totpCode } from './totp-code.ts'
