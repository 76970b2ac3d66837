import type { Query } from '../../platform/database/database.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { Identifier } from './identifier.ts'
import { findPerson, type Person } from './person-store.ts'
import type { Visitor } from './visitor.ts'

/** Whom an identifier names, and what counts the failures of this browser with it. */
export type AccountKey = (
  identifier: Identifier,
  visitor: Visitor,
) => Promise<{ person: Person | undefined; account: Buffer }>

export const createAccountKey = ({ query, hmac }: { query: Query; hmac: Hmac }): AccountKey => {
  const keys = lockoutKeys(hmac)
  return async (identifier, visitor) => {
    const device = visitor.device === undefined ? undefined : tokenDigest('device', visitor.device)
    const person = await findPerson(query, identifier, device)
    if (!person) return { person, account: keys.identifier(identifier.canonical) }
    // What strangers do elsewhere does not lock the owner out here.
    const isOwnDevice = person.isDeviceKnown && device !== undefined
    return { person, account: isOwnDevice ? keys.device(person.id, device) : keys.user(person.id) }
  }
}
