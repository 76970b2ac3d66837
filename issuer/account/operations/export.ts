import { type Database, queryOf } from '../../../platform/database/database.ts'
import { toUserSession } from '../../directory/sessions/records.ts'
import { listUserSessions } from '../../directory/sessions/user-session-store.ts'
import { listFactors } from '../../directory/users/factors/index.ts'
import { toMfaVerification } from '../../directory/users/factors/mfa-verification.ts'
import { toUser } from '../../directory/users/user.ts'
import type { ChangeAccount } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { readExportedParts } from './export-store.ts'

/**
 * Everything that is kept about the person, as JSON: never a password, a secret or a token. It is a change, because the
 * audit trail says that it was taken.
 */
export const createExportOperations = ({
  database: { query },
  change,
}: {
  database: Pick<Database, 'query'>
  change: ChangeAccount
}) => ({
  export: (context: AccountContext) =>
    change(context, { fields: ['export'], reauthenticated: true }, async ({ trx }, row) => {
      const { userId } = context.person
      const factors = await listFactors(queryOf(trx), userId)
      const sessions = await listUserSessions(query, userId)
      return {
        user: toUser(row),
        factors: factors.map(toMfaVerification),
        sessions: sessions.map(toUserSession),
        ...(await readExportedParts(queryOf(trx), userId)),
      }
    }),
})
export type ExportOperations = ReturnType<typeof createExportOperations>
