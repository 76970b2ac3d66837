/** The pages on which people look after their accounts: pure functions too, each within the same shell. */
export { type ApplicationOnPage, applicationsPage } from './applications.ts'
export { dataPage, deletedPage } from './data.ts'
export { type Fact, overviewPage } from './overview.ts'
export { type SessionOnPage, sessionsPage } from './sessions.ts'
export { type AccountMenuGroup, type AccountShell, accountPage, overviewPath, type PlainMessage } from './shell.ts'
export { accountSignedOutPage } from './signed-out.ts'
