import type { TokenAudit } from '../../../../base/audit/token-audit.ts'
import { normalizedPassword } from '../../password.ts'
import { type BreachFilter, sha1 } from './filter.ts'
import type { RangeService } from './range-service.ts'

export interface BreachedPasswords {
  /** Whether it is known to have been in a breach. A list that cannot be asked knows none; the audit says so. */
  has(password: string): Promise<boolean>
}

export interface BreachedPasswordsDependencies {
  /** `BREACHED_PASSWORDS_FILE` */
  filter?: BreachFilter | undefined
  /** `BREACHED_PASSWORDS_URL` */
  service?: RangeService | undefined
  audit: Pick<TokenAudit, 'record'>
}

/**
 * Nobody is kept from registering because a list cannot be asked: it is one defence of several, and an attacker could
 * have it fail for everybody.
 */
export const createBreachedPasswords = ({
  filter,
  service,
  audit,
}: BreachedPasswordsDependencies): BreachedPasswords => {
  const unlessFailing = (source: string) => (error: unknown) => {
    audit.record({
      key: 'Password.BreachCheck',
      result: 'Error',
      payload: { source, error: error instanceof Error ? error.name : 'unknown' },
    })
    return false
  }

  return {
    async has(password) {
      // Lists know passwords as they were typed.
      const digests = [...new Set([password, normalizedPassword(password)])].map(sha1)
      for (const digest of digests) {
        if (await filter?.has(digest).catch(unlessFailing('file'))) return true
        if (await service?.has(digest).catch(unlessFailing('service'))) return true
      }
      return false
    },
  }
}
