import type { ReceivedLogout } from '../../support/back-channel.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** A provider under test, with what was registered there. */
export interface Target {
  /** Discovery is below it. */
  issuer: string
  clients: Readonly<Record<ClientName, TestApplication>>
  /** The claims that userinfo has of the person, all scopes together. */
  person: Readonly<Record<string, unknown>>
  /** How the person answers pages; the first row whose field a form has. */
  answers: readonly PageAnswer[]
  /** Stands on the page that says that the person is signed out. */
  signedOut: string
  /** What the client `told` was told of logouts. */
  logouts: readonly ReceivedLogout[]
  /** Everything that the provider keeps is so many seconds older. */
  age(seconds: number): Promise<void>
  close(): Promise<void>
}

/**
 * All confidential, for the code flow without PKCE: `basic` and `other` by `client_secret_basic`, `post` by
 * `client_secret_post`, `rs256` wants ID tokens so signed, `es256` so, `told` is told of logouts.
 */
export type ClientName = 'basic' | 'other' | 'post' | 'rs256' | 'es256' | 'told'

export interface PageAnswer {
  page: 'sign-in' | 'consent' | 'logout'
  /** An input or a button. */
  field: string
  /** Those are sent that the form has. */
  values: Readonly<Record<string, string>>
}

export const redirectUri = 'https://client.example.test/cb'
export const postLogoutRedirectUri = 'https://client.example.test/signed-out'

/** What may differ in a test of the OpenID Foundation: an assertion by its name. */
export type Requires = (requirement: string, check: () => void) => void

export type TargetName = 'ours' | 'theirs'

/** A module of a test plan of the OpenID Foundation. */
export interface ConformanceModule {
  proves: string
  run(target: Target, requires: Requires): Promise<void>
  /** Requirements that are not met, and why that is right. */
  differs?: Partial<Record<TargetName, Readonly<Record<string, string>>>>
}

/** By their names at the OpenID Foundation. */
export type ConformanceModules = Readonly<Record<string, ConformanceModule>>
