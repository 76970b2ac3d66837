import type { TokenAudit } from '../../base/audit/token-audit.ts'
import type { Mutate } from '../../base/mutate.ts'
import { createFactors } from '../../directory/users/factors/index.ts'
import type { PasswordRules } from '../../directory/users/password-policy/password-rules.ts'
import { createVerificationAttempts } from '../attempts.ts'
import { createChangeAccount } from '../change.ts'
import { createVerifications, type VerificationDependencies, type Verifications } from '../verifications/index.ts'
import { type AddressOperations, createAddressOperations } from './addresses.ts'
import { type ApplicationOperations, createApplicationOperations } from './applications.ts'
import { createDeletionOperations, type DeletionOperations } from './deletion.ts'
import { createExportOperations, type ExportOperations } from './export.ts'
import { createFactorOperations, type FactorOperations } from './factors.ts'
import { type AccountImpersonations, accountImpersonationOperations } from './impersonations.ts'
import { createPasswordOperations, type PasswordOperations } from './password.ts'
import { createProfileOperations, type ProfileOperations } from './profile.ts'
import { createSessionOperations, type SessionOperations } from './sessions.ts'

export interface AccountDependencies extends Omit<VerificationDependencies, 'attempts' | 'factors'> {
  mutate: Mutate
  audit: TokenAudit
  passwordRules: PasswordRules
}

/**
 * What people do to their own accounts. The Account API and the account pages call the same: which fields they may
 * change, that they proved again who they are, and what ends with a change is decided here.
 */
export interface AccountOperations {
  verifications: Verifications
  profile: ProfileOperations
  password: PasswordOperations
  addresses: AddressOperations
  factors: FactorOperations
  sessions: SessionOperations
  applications: ApplicationOperations
  data: ExportOperations & DeletionOperations
  impersonations: AccountImpersonations
}

export const createAccountOperations = (given: AccountDependencies): AccountOperations => {
  const { database, hmac, mutate, audit, envelope } = given
  const change = createChangeAccount({ mutate })
  const factors = createFactors({ envelope, hmac })
  const attempts = createVerificationAttempts({ query: database.query, hmac, mutate, audit })
  const dependencies = { ...given, change, factors, attempts }
  return {
    verifications: createVerifications(dependencies),
    profile: createProfileOperations(dependencies),
    password: createPasswordOperations(dependencies),
    addresses: createAddressOperations(dependencies),
    factors: createFactorOperations(dependencies),
    sessions: createSessionOperations(dependencies),
    applications: createApplicationOperations(dependencies),
    data: { ...createExportOperations(dependencies), ...createDeletionOperations(dependencies) },
    impersonations: accountImpersonationOperations({ query: database.query, change }),
  }
}
