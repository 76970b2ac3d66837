import type { AccountPage } from './account-page.ts'
import { applications } from './applications.ts'
import { confirm } from './confirm.ts'
import { data } from './data.ts'
import { overviewOf } from './overview.ts'
import { sessions } from './sessions.ts'

const beside: readonly AccountPage<never>[] = [sessions, applications, data, confirm]

/** Every page of the account, in the order of the menu. */
export const pages = [overviewOf(beside as readonly AccountPage[]), ...beside] as readonly AccountPage[]
