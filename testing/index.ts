/**
 * `surrogate/testing`: a browser without a window, for integrators' own tests (docs/testing.md). It knows no test
 * runner.
 */
export { createAuthenticator } from './authenticator.ts'
export { type Browser, createBrowser, type Hop, hopLine } from './browser.ts'
export { codesFrom } from './message-codes.ts'
export { SignInFailed } from './step.ts'
