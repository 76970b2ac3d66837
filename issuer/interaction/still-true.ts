import type { Query } from '../../platform/database/database.ts'
import { listFactors } from '../directory/users/factors/index.ts'
import type { UserRow } from '../directory/users/user.ts'
import { findLinking, type LinkingSettings } from './find-linking.ts'
import { readIdentifier } from './identifier.ts'
import type { Proof, ProofKindName } from './proofs.ts'

type Owner = Pick<UserRow, 'id' | 'primary_email' | 'primary_phone'>
type Shown = Pick<Proof, 'kind' | 'data'>

/**
 * Whether what was proven of the person is so now: an address says who somebody is, and a factor says it again, only as
 * long as they are theirs. `person` is held until the transaction ends. Of a password, see `notePersonSignsIn`.
 */
export const areStillTrue = async (
  trx: Query,
  person: Owner,
  proofs: readonly Shown[],
  settings: LinkingSettings,
): Promise<boolean> => hasAddresses(person, proofs) && (await hasFactorsAndIdentities(trx, person.id, proofs, settings))

/** The part of addresses. */
export const hasAddresses = (person: Owner, proofs: readonly Shown[]): boolean =>
  proofs.every((proof) => hasAddress(person, proof))

/** The part of factors and identities. What holds the person has to be sent before it. */
export const hasFactorsAndIdentities = async (
  trx: Query,
  userId: string,
  proofs: readonly Shown[],
  settings: LinkingSettings,
): Promise<boolean> => (await hasFactors(trx, userId, proofs)) && (await hasIdentities(trx, userId, proofs, settings))

/** An identity is theirs, or may become theirs by its address. */
const hasIdentities = async (
  trx: Query,
  userId: string,
  proofs: readonly Shown[],
  settings: LinkingSettings,
): Promise<boolean> => {
  for (const identity of proofs.flatMap(({ data }) => data.federated ?? [])) {
    const linking = await findLinking(trx, identity, settings)
    const isTheirs = 'userId' in linking && linking.userId === userId
    if (!isTheirs || (linking.outcome !== 'known' && !(linking.outcome === 'by_address' && identity.isByAddress))) {
      return false
    }
  }
  return true
}

const addressKinds: readonly ProofKindName[] = ['email_code', 'phone_code', 'one_time_token']

const hasAddress = (person: Owner, { kind, data: { identifier } }: Shown): boolean => {
  if (!identifier || !addressKinds.includes(kind)) return true
  if (identifier.type === 'email') {
    return person.primary_email?.normalize('NFKC').toLowerCase() === identifier.value.toLowerCase()
  }
  return readIdentifier(`+${identifier.value}`)?.spellings.includes(person.primary_phone ?? '') === true
}

const hasFactors = async (trx: Query, userId: string, proofs: readonly Shown[]): Promise<boolean> => {
  const shown = proofs.flatMap(({ data }) => data.factorId ?? [])
  if (shown.length === 0) return true
  const held = (await listFactors(trx, userId)).map(({ id }) => id)
  return shown.every((id) => held.includes(id))
}
