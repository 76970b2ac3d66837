/** The pages on which people look after their accounts: pure functions too, each within the same shell. */
export { type ApplicationOnPage, applicationsPage } from './applications.ts'
export { type Asked, accountConfirmPage, type ConfirmedBy, type ConfirmPage } from './confirm.ts'
export { dataPage, deletedPage } from './data.ts'
export { authenticatorPage, backupCodesPage, type FactorOnPage, passkeysPage } from './factors.ts'
export { type Fact, overviewPage } from './overview.ts'
export type { AccountError } from './problems.ts'
export { type ProfileField, profilePage } from './profile.ts'
export { type SessionOnPage, sessionsPage } from './sessions.ts'
export {
  type AccountMenuGroup,
  type AccountShell,
  accountPage,
  confirmFirst,
  overviewPath,
  type PlainMessage,
} from './shell.ts'
export { accountAddressPage, passwordPage, usernamePage } from './sign-in-names.ts'
export { accountSignedOutPage } from './signed-out.ts'
