import { queryOf, type Transaction } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import { areStillTrue } from '../interaction/still-true.ts'
import type { AccountPerson } from './person.ts'
import { type Reauthentication, selectReauthentications } from './verification-store.ts'

export type { Reauthentication }

/** How long it counts that somebody proved again who they are, in seconds. */
export const reauthenticationSeconds = 600

/** Nobody becomes theirs by being shown again. */
const linksNothing = { socialSignIn: { automaticAccountLinking: false } } as const

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
  for (const { primary_email, primary_phone, ...found } of await selectReauthentications(
    transaction,
    person,
    verificationId,
  )) {
    const owner = { id: person.userId, primary_email, primary_phone }
    if (await areStillTrue(queryOf(transaction), owner, [found], linksNothing)) return found
  }
  return undefined
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
