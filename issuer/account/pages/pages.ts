import type { AccountPage } from './account-page.ts'
import { email, phone } from './addresses.ts'
import { applications } from './applications.ts'
import { confirm } from './confirm.ts'
import { data } from './data.ts'
import { authenticator, backupCodes, passkeys } from './factors.ts'
import { overviewOf } from './overview.ts'
import { password } from './password.ts'
import { profile } from './profile.ts'
import { sessions } from './sessions.ts'
import { username } from './username.ts'

// What a page shows again is its own business.
const beside = [
  profile,
  email,
  phone,
  username,
  password,
  passkeys,
  authenticator,
  backupCodes,
  sessions,
  applications,
  data,
  confirm,
] as unknown as readonly AccountPage[]

/** Every page of the account, in the order of the menu. */
export const pages: readonly AccountPage[] = [overviewOf(beside), ...beside]
