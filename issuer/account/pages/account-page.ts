import type { Query } from '../../../platform/database/database.ts'
import type { Form } from '../../base/read-form.ts'
import type { OfferedConnector } from '../../connectors/federation.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import type { AccountFederation } from '../../interaction/account-federation.ts'
import type { AuthorizationClient } from '../../interaction/authorization-client.ts'
import type { AccountShell, Fact, PlainMessage } from '../../pages/account/index.ts'
import type { Page } from '../../pages/index.ts'
import type { FoundSession } from '../../tokens/sessions/session-store.ts'
import type { AccountOperations } from '../operations/index.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import type { AccountSettings } from '../settings.ts'

export const groups = {
  you: 'accountGroupYou',
  signIn: 'accountGroupSignIn',
  access: 'accountGroupAccess',
  data: 'accountGroupData',
} as const satisfies Record<string, PlainMessage>

/** Providers at which people have accounts too. */
export interface PageFederation extends Pick<AccountFederation, 'begin' | 'ofPerson'> {
  offered(client: AuthorizationClient): Promise<readonly OfferedConnector[]>
}

/** A person at one of the pages. */
export interface AccountVisit {
  query: Query
  operations: AccountOperations
  federation: PageFederation
  person: AccountPerson
  session: FoundSession
  settings: AccountSettings
  experience: SignInExperience
  shell: AccountShell
  /** Where browsers reach the issuer, without scheme and port: passkeys belong to it. */
  hostname: string
  requestId: string
  /** Of its address. */
  parameters: URLSearchParams
  /** What an operation is told of this request. `operationId`: as the Account API calls it. */
  context(operationId: string): AccountContext
}

/** A form of the page that was sent: one of these ends it. */
export interface AccountAnswer extends AccountVisit {
  form: Form
  /** Back to the page by a redirect, so that a reload sends nothing again; it says what went well. */
  done(notice?: PlainMessage, path?: string): void
  /** Where a page says what went well: an address of ours. */
  told(notice: PlainMessage, path: string): string
  /** By a redirect, to an address of ours. */
  goTo(location: string): void
  /** To somebody else: where an identity is linked. */
  leave(url: string, setCookies?: readonly string[]): void
  /** The page again, with what was entered. Default status 400. */
  again(entered: unknown, status?: number): Promise<void>
  /** Something that is shown once. */
  send(page: Page, options?: { status?: number; setCookies?: readonly string[] }): Promise<void>
  /** `Set-Cookie` of somebody who is gone. */
  clearSession: string
  /** A file to keep. */
  download(name: string, content: unknown): void
}

/** A page of the account. One more is one more line in `pages.ts`. */
export interface AccountPage<Entered = unknown> {
  path: '/account' | `/account/${string}`
  title: PlainMessage
  /** Where it stands in the menu; undefined: nowhere. */
  group?: keyof typeof groups | 'first' | undefined
  /** False: it is not in the menu, and does not exist. Default: it is there for everybody. */
  isShown?(visit: Pick<AccountVisit, 'settings' | 'experience'>): boolean
  /** What it changes needs a proof of who the person is, of the last ten minutes: `shell.confirmPath` says when. */
  needsConfirmation?: boolean
  show(visit: AccountVisit, entered?: Entered): Promise<Page>
  /** By the value of the button, the field `choice`. */
  choices?: Readonly<Record<string, (answer: AccountAnswer) => Promise<void> | void>>
  /** What the overview says beside its name. */
  fact?(visit: AccountVisit): Promise<Fact | undefined>
}
