import type { Database } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { TokenAudit } from '../../base/audit/token-audit.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import type { Federation } from '../../connectors/federation.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import type { Factors } from '../../directory/users/factors/index.ts'
import { lockoutKeys } from '../../directory/users/lockout/lockout-keys.ts'
import type { PasswordHasher } from '../../directory/users/password.ts'
import type { Messages } from '../../messages/messages.ts'
import type { LocaleOf } from '../../pages/index.ts'
import type { VerificationAttempts } from '../attempts.ts'
import type { AccountPerson } from '../person.ts'

export interface VerificationDependencies {
  database: Pick<Database, 'query' | 'transaction' | 'knex'>
  attempts: VerificationAttempts
  audit: TokenAudit
  federation: Federation
  envelope: Envelope
  hmac: Hmac
  factors: Factors
  messages: Messages
  notifyOwner: NotifyOwner
  passwords: PasswordHasher
  settings: Pick<Settings, 'experience'>
  localeOf: LocaleOf
  baseUrl: string
  now: () => Date
}

/**
 * Failures count for one sign-in, whichever of its tokens they came with: a browser gets any number of those. Nobody is
 * locked out of another sign-in by them.
 */
export const holderKey = (hmac: Hmac, person: AccountPerson): Buffer =>
  lockoutKeys(hmac).holder(person.userId, person.sessionId)
