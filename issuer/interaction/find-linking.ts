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
): Promise<Linking> =>
  linkingOf({
    holderId: await findHolder(trx, identity),
    assertion: { kind: identity.kind, email: identity.email },
    account: identity.email === undefined ? undefined : await findByAddress(trx, identity.email, identity),
    linksAutomatically: socialSignIn.automaticAccountLinking,
  })
