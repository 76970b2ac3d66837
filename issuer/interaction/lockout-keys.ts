import type { Query } from '../../platform/database/database.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { Identifier } from './identifier.ts'
import { findPerson, type Person } from './person-store.ts'
import type { Visitor } from './visitor.ts'

/** Whom an identifier names, and what counts the failures of this browser with it. */
export type AccountKey = (
  identifier: Identifier,
  visitor: Visitor,
) => Promise<{ person: Person | undefined; account: Buffer }>

export const createAccountKey =
  ({ query, hmac }: { query: Query; hmac: Hmac }): AccountKey =>
  async (identifier, visitor) => {
    const device = visitor.device === undefined ? undefined : tokenDigest('device', visitor.device)
    const person = await findPerson(query, identifier, device)
    const key = (...parts: string[]) => hmac('sign-in-failures', ...parts)
    if (!person) return { person, account: key('identifier', identifier.canonical) }
    // What strangers do elsewhere does not lock the owner out here.
    const isOwnDevice = person.isDeviceKnown && device !== undefined
    return {
      person,
      account: isOwnDevice ? key('device', person.id, device.toString('hex')) : key('user', person.id),
    }
  }
