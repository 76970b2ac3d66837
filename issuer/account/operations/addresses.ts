import { problem } from '../../base/errors/problems.ts'
import type { Mutation } from '../../base/mutate.ts'
import { addressNotices, type NotifyOwner } from '../../base/owner-notices.ts'
import { joinByEmail } from '../../directory/organizations/jit/join.ts'
import { takeTurnsAt } from '../../directory/people/person-store.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import { readPhone } from '../../directory/users/phone.ts'
import type { UserRow } from '../../directory/users/user.ts'
import { isPhoneInUse, type UserColumns, updateUser } from '../../directory/users/user-store.ts'
import { isAddressTaken } from '../../interaction/person-change-store.ts'
import { codeKindOf } from '../../interaction/settings.ts'
import { type ChangeAccount, recordUser } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { useVerification } from '../verification-store.ts'
import { type AddressType, readAddress } from '../verifications/codes.ts'
import { keepingAWayIn } from './ways-in.ts'

export interface AddressOperations {
  /**
   * The person gets the address that a code has shown to be theirs; the verification is used up. Who had it as their
   * old one is told there. Throws 404 `verification_record.not_found`, 422 when somebody else has the address.
   */
  set(context: AccountContext, type: AddressType, address: { value: string; verificationId: string }): Promise<void>
  /** Throws 422 when the person could not sign in any more. */
  remove(context: AccountContext, type: AddressType): Promise<void>
}

const columnOf = { email: 'primary_email', phone: 'primary_phone' } as const

export const createAddressOperations = ({
  change,
  notifyOwner,
  settings,
}: {
  change: ChangeAccount
  notifyOwner: NotifyOwner
  settings: Pick<Settings, 'experience'>
}): AddressOperations => {
  const requirementsOf = (type: AddressType) => ({ fields: [type], scopes: [type], reauthenticated: true })

  const replace = async ({ person }: AccountContext, mutation: Mutation, before: UserRow, columns: UserColumns) => {
    const after = await updateUser(mutation.trx, before.id, columns)
    for (const notice of addressNotices(before, after)) {
      await notifyOwner(mutation.trx, before, notice, { ip: person.ip })
    }
    await recordUser(mutation, after)
    return after
  }

  const isTaken: Record<AddressType, (mutation: Mutation, userId: string, value: string) => Promise<boolean>> = {
    async email({ trx }, userId, email) {
      await takeTurnsAt(trx, { primaryEmail: email })
      return isAddressTaken(trx, userId, email)
    },
    phone: ({ trx }, userId, number) => isPhoneInUse(trx, readPhone(number).spellings, userId),
  }

  return {
    set: (context, type, { value, verificationId }) =>
      change(context, requirementsOf(type), async (mutation, before) => {
        const { trx } = mutation
        const { canonical } = readAddress({ type, value })
        const kinds = [codeKindOf(type)]
        const used = await useVerification(trx, context.person, { id: verificationId, kinds })
        if (used?.data.identifier?.value !== canonical) throw problem('verification_record.not_found')
        const address = type === 'phone' ? readPhone(canonical).number : canonical
        if (await isTaken[type](mutation, before.id, canonical)) throw problem(`user.${type}_already_in_use`)
        const columns = { [columnOf[type]]: address }
        // It was theirs, but nobody had seen that it was.
        if (before[columnOf[type]] === address) await updateUser(trx, before.id, columns)
        else await replace(context, mutation, before, columns)
        if (type === 'email') await joinByEmail(mutation, { userId: before.id, email: address })
      }),

    remove: (context, type) =>
      change(context, requirementsOf(type), async (mutation, before) => {
        if (before[columnOf[type]] === null) return
        await keepingAWayIn(mutation.trx, before, settings.experience(), () =>
          replace(context, mutation, before, { [columnOf[type]]: null }),
        )
      }),
  }
}
