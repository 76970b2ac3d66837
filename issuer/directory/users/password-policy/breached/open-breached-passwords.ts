import type { TokenAudit } from '../../../../base/audit/token-audit.ts'
import { type BreachedPasswords, createBreachedPasswords } from './breached-passwords.ts'
import { openFilter } from './filter.ts'
import { createRangeService } from './range-service.ts'

export interface BreachedPasswordsOptions {
  /** `BREACHED_PASSWORDS_FILE` */
  file?: string | undefined
  /** `BREACHED_PASSWORDS_URL` */
  url?: string | undefined
}

/** The lists that the operator has set; none by default. Throws `StartupError` for a file that is no filter. */
export const openBreachedPasswords = async (
  { file, url }: BreachedPasswordsOptions,
  { audit }: { audit: Pick<TokenAudit, 'record'> },
): Promise<BreachedPasswords & { close(): Promise<void> }> => {
  const filter = file === undefined ? undefined : await openFilter(file)
  const service = url === undefined ? undefined : createRangeService(url)
  return { ...createBreachedPasswords({ filter, service, audit }), close: async () => filter?.close() }
}
