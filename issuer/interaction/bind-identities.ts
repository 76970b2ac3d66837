import type { Query } from '../../platform/database/database.ts'
import type { Recording } from '../base/recording.ts'
import type { Federation } from '../connectors/federation.ts'
import { joinByConnector } from '../directory/organizations/jit/join.ts'
import { findProviderName } from '../directory/users/provider-name-store.ts'
import { adoptAddress, findHolder, linkIdentity, syncProfile } from './identity-store.ts'
import { authenticating, type Proof } from './proofs.ts'

/** It is somebody else's, or its connector leads elsewhere by now. */
export class IdentityTaken extends Error {
  override readonly name = 'IdentityTaken'
}

export interface Bound {
  /** The person is another than before. */
  isChanged: boolean
  /** The names of the providers that tell who they are from now on. */
  linked: readonly string[]
  /** A password of before is gone, and what it opened has to end. */
  isPasswordVoid: boolean
}

/**
 * Makes the identities of these proofs the person's, takes over what the providers say, and lets an enterprise's people
 * into its organizations. The person is held, and what they sign in by was found to be theirs. Throws `IdentityTaken`,
 * or what the database says of one that somebody gets just now.
 */
export const bindIdentities = async (
  recording: Recording & { trx: Query },
  userId: string,
  proofs: readonly Proof[],
  isStillFrom: Federation['isStillFrom'],
): Promise<Bound> => {
  const { trx } = recording
  const bound = { isChanged: false, linked: [] as string[], isPasswordVoid: false }
  const shown = authenticating(proofs)
  const isPasswordShown = shown.some(({ kind }) => kind === 'password')
  // That it is theirs was seen when they were held (`hasFactorsAndIdentities`).
  const signsInBy = shown
    .filter(({ userId: owner }) => owner === userId)
    .flatMap(({ data: { federated } }) => (federated === undefined || federated.isByAddress ? [] : federated))
  for (const identity of proofs.flatMap(({ data }) => data.federated ?? [])) {
    const holder = signsInBy.includes(identity) ? userId : await findHolder(trx, identity)
    if (holder !== undefined && holder !== userId) throw new IdentityTaken()
    if (holder === undefined) {
      if (!(await isStillFrom(trx, identity))) throw new IdentityTaken()
      await linkIdentity(trx, userId, identity)
      bound.isChanged = true
      bound.linked.push(await findProviderName(trx, identity.target))
      const { email } = identity
      const adopted = email === undefined ? undefined : await adoptAddress(trx, userId, { email, isPasswordShown })
      if (adopted?.isPasswordVoid) bound.isPasswordVoid = true
    }
    if (identity.syncProfile && (await syncProfile(trx, userId, identity))) bound.isChanged = true
    if (identity.kind === 'sso') await joinByConnector(recording, { userId, ssoConnectorId: identity.connectorId })
  }
  return bound
}
