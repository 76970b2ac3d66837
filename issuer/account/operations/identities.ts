import { queryOf } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutation } from '../../base/mutate.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import type { Federation } from '../../connectors/federation.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import { identityAt } from '../../directory/users/identity.ts'
import { unknownIdentity } from '../../directory/users/identity-operations.ts'
import { findProviderName } from '../../directory/users/provider-name-store.ts'
import { toUser, type UserRow } from '../../directory/users/user.ts'
import { updateUser } from '../../directory/users/user-store.ts'
import { findHolder, linkIdentity } from '../../interaction/identity-store.ts'
import { type ChangeAccount, type Requirements, recordUser } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { useVerification } from '../verification-store.ts'
import { keepingAWayIn } from './ways-in.ts'

/** Who somebody is at other providers. */
export interface IdentityOperations {
  /**
   * The identity that `federated.verify` found becomes the person's; `replaces`: also instead of another one there.
   * Throws 422 `user.identity_already_in_use` when somebody else has it.
   */
  link(context: AccountContext, identity: { verificationId: string; replaces: boolean }): Promise<void>
  /** `target`: how identities name the provider. Throws 422 when the person could not sign in any more. */
  unlink(context: AccountContext, target: string): Promise<void>
}

const requirements: Requirements = { fields: ['social'], scopes: ['identities'], reauthenticated: true }

export const createIdentityOperations = ({
  change,
  federation,
  notifyOwner,
  settings,
}: {
  change: ChangeAccount
  federation: Pick<Federation, 'isStillFrom'>
  notifyOwner: NotifyOwner
  settings: Pick<Settings, 'experience'>
}): IdentityOperations => {
  const tell = async (
    { person }: AccountContext,
    { trx }: Mutation,
    owner: UserRow,
    type: 'IdentityLinked' | 'IdentityUnlinked',
    target: string,
  ) => notifyOwner(trx, owner, { type, provider: await findProviderName(trx, target) }, { ip: person.ip })

  return {
    link: (context, { verificationId: id, replaces }) =>
      change(context, requirements, async (mutation, row) => {
        const { trx } = mutation
        const used = await useVerification(trx, context.person, { id, kinds: ['federated'] })
        const identity = used?.data.federated
        // People of an enterprise come by signing in.
        if (identity?.kind !== 'social') throw problem('verification_record.not_found')
        if (!(await federation.isStillFrom(queryOf(trx), identity))) throw problem('verification_record.not_found')
        const holder = await findHolder(trx, identity)
        const isElsewhere = identityAt(toUser(row), identity.target) !== undefined
        if ((holder !== undefined && holder !== row.id) || (isElsewhere && !replaces)) {
          throw problem('user.identity_already_in_use')
        }
        await linkIdentity(trx, row.id, identity)
        await recordUser(mutation, await updateUser(trx, row.id, {}))
        await tell(context, mutation, row, 'IdentityLinked', identity.target)
      }),

    unlink: (context, target) =>
      change(context, requirements, async (mutation, row) => {
        if (identityAt(toUser(row), target) === undefined) throw unknownIdentity(target)
        const identities = Object.fromEntries(Object.entries(row.identities).filter(([name]) => name !== target))
        const after = await keepingAWayIn(mutation.trx, row, settings.experience(), () =>
          updateUser(mutation.trx, row.id, { identities }),
        )
        await recordUser(mutation, after)
        await tell(context, mutation, row, 'IdentityUnlinked', target)
      }),
  }
}
