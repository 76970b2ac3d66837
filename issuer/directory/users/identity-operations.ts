import { isDeepStrictEqual } from 'node:util'
import type { EventData } from '../../../events/catalogue.ts'
import { storableCustomData } from '../../base/custom-data.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutation } from '../../base/mutate.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import type { OperationContext } from '../../base/route.ts'
import { type Identity, identityAt } from './identity.ts'
import { findProviderName } from './provider-name-store.ts'
import { removeSsoIdentities } from './sso-identity-store.ts'
import { toUser, type User, type UserRow } from './user.ts'
import { lockUser, updateUser } from './user-store.ts'

export interface IdentityDependencies extends Pick<ManagementDependencies, 'mutate'> {
  notifyOwner: NotifyOwner
}

/** Who users are elsewhere. One identity is one user's, which the database sees to (`user_identities`). */
export const identityOperations = ({ mutate, notifyOwner }: IdentityDependencies) => {
  const lockFor = async ({ trx }: Mutation, userId: string): Promise<UserRow> =>
    requireFound(await lockUser(trx, userId), userId, notFound)

  const tell = async (
    { trx }: Mutation,
    owner: UserRow,
    type: 'IdentityLinked' | 'IdentityUnlinked',
    target: string,
  ): Promise<void> => notifyOwner(trx, owner, { type, provider: await findProviderName(trx, target) })

  const record = ({ record }: Mutation, userId: string, data: EventData<'User.Data.Updated'>) =>
    record({ type: 'User.Data.Updated', entity: { kind: 'user', id: userId }, data })

  return {
    /**
     * Links or replaces the identity at a target, after `check`; answers all identities. Throws 422 when somebody else
     * has it.
     */
    set: (
      context: OperationContext,
      userId: string,
      target: string,
      identity: Identity,
      check?: (trx: Mutation['trx']) => Promise<void>,
    ): Promise<User['identities']> =>
      mutate(context, async (mutation) => {
        await check?.(mutation.trx)
        const row = await lockFor(mutation, userId)
        const before = toUser(row).identities
        const identities = storableCustomData({ ...before, [target]: identity })
        if (isDeepStrictEqual(identities, before)) return before
        await updateUser(mutation.trx, userId, { identities })
        await record(mutation, userId, identities)
        await tell(mutation, row, 'IdentityLinked', target)
        return identities
      }),

    /** Answers the user. Throws 404 when there is no identity at the target. */
    remove: (context: OperationContext, userId: string, target: string): Promise<User> =>
      mutate(context, async (mutation) => {
        const row = await lockFor(mutation, userId)
        const user = toUser(row)
        if (identityAt(user, target) === undefined) throw unknownIdentity(target)
        const identities = Object.fromEntries(Object.entries(user.identities).filter(([name]) => name !== target))
        const changed = toUser(await updateUser(mutation.trx, userId, { identities }))
        await record(mutation, userId, changed)
        await tell(mutation, row, 'IdentityUnlinked', target)
        return changed
      }),

    /** Throws 404 when the user has none by this connector. */
    removeSso: (context: OperationContext, userId: string, connectorId: string): Promise<void> =>
      mutate(context, async (mutation) => {
        const row = await lockFor(mutation, userId)
        const removed = await removeSsoIdentities(mutation.trx, userId, connectorId)
        if (removed === 0) throw problem('user.identity_not_exist', { data: { ssoConnectorId: connectorId } })
        await record(mutation, userId, toUser(row))
        await tell(mutation, row, 'IdentityUnlinked', connectorId)
      }),
  }
}

export const unknownIdentity = (target: string) => problem('user.identity_not_exist', { data: { target } })
