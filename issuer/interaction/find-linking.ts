import type { Transaction } from '../../platform/database/database.ts'
import { findByAddress, findHolder } from './identity-store.ts'
import { type Linking, linkingOf } from './linking.ts'
import type { FederatedIdentity } from './proofs.ts'
import type { SignInSettings } from './settings.ts'

export interface LinkingSettings {
  socialSignIn: Pick<SignInSettings['socialSignIn'], 'automaticAccountLinking'>
}

/** Whom an identity stands for, by what the database has now. */
export const findLinking = async (
  trx: Transaction,
  identity: FederatedIdentity,
  { socialSignIn }: LinkingSettings,
): Promise<Linking> => {
  const { kind, email } = identity
  const holderId = await findHolder(trx, identity)
  // An address says nothing of an identity that is somebody's.
  const isAsked = holderId === undefined && email !== undefined
  const account = isAsked ? await findByAddress(trx, email, identity) : undefined
  const linksAutomatically = socialSignIn.automaticAccountLinking
  return linkingOf({ holderId, assertion: { kind, email }, account, linksAutomatically })
}
