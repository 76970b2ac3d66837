import type { Transaction } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import type { AccountPerson } from './person.ts'
import { type Reauthentication, selectReauthentication } from './verification-store.ts'

export type { Reauthentication }

/** How long it counts that somebody proved again who they are, in seconds. */
export const reauthenticationSeconds = 600

/**
 * That the person proved lately, with any factor, who they are: by the verification that the call names, at the pages
 * by the newest of the session. One that was made elsewhere, with another token too, is none.
 */
export const findReauthentication = async (
  transaction: Transaction,
  person: AccountPerson,
): Promise<Reauthentication | undefined> => {
  const { sid, verificationId } = person
  if (sid !== undefined && verificationId === undefined) return undefined
  return selectReauthentication(transaction, person, verificationId)
}

/** As `findReauthentication`; throws 401 `verification_record.permission_denied` where there is none. */
export const requireReauthentication = async (
  person: AccountPerson,
  transaction: Transaction,
): Promise<Reauthentication> => {
  const found = await findReauthentication(transaction, person)
  if (!found) throw problem('verification_record.permission_denied')
  return found
}
