import { onlyValue } from '../../base/read-form.ts'
import { type AccountError, type ActingLimit, actingLimits, impersonationsPage } from '../../pages/account/index.ts'
import type { AccountAnswer, AccountPage } from './account-page.ts'
import { errorOf, statusOf } from './errors.ts'

interface Entered {
  error: AccountError
}

/** It was decided elsewhere, or nobody waits for it any more: the page shows it as it is now. */
const over = ['accountActingOver'] as const
const isOver = {
  'impersonation.request_not_pending': over,
  'impersonation.number_mismatch': over,
  'entity.not_exists_with_id': over,
}

const limitIn = ({ form }: AccountAnswer): ActingLimit => {
  const given = onlyValue(form, 'limit')
  // A form without it was made by somebody else: the shortest.
  return given === 'none' ? 'none' : (actingLimits.find((limit) => String(limit) === given) ?? actingLimits[0])
}

/** Who asks to act as the person, who does and who did. */
export const impersonations: AccountPage<Entered> = {
  path: '/account/impersonations',
  title: 'accountActing',
  group: 'access',
  needsConfirmation: true,

  async show({ operations, person, shell }, entered) {
    const [requests, acted] = await Promise.all([
      operations.impersonations.requests(person),
      operations.impersonations.list(person),
    ])
    return impersonationsPage(shell, {
      requests: requests.filter(({ status }) => status === 'pending'),
      allowed: requests.filter(({ canBeWithdrawn }) => canBeWithdrawn),
      acted,
      error: entered?.error,
    })
  },

  async fact({ operations, person }) {
    const requests = await operations.impersonations.requests(person)
    if (requests.some(({ status }) => status === 'pending')) return { say: 'accountActingWaits' }
    const acted = await operations.impersonations.list(person)
    return acted.some(({ isActive }) => isActive) ? { say: 'accountActingNow' } : undefined
  },

  choices: {
    async approve(answer) {
      const { operations, form, context, done, again } = answer
      const limit = limitIn(answer)
      const agreement = {
        number: onlyValue(form, 'number') ?? '',
        readOnly: onlyValue(form, 'readOnly') === 'yes',
        ...(limit !== 'none' && { maxTtl: limit * 60 }),
      }
      const call = context('approveMyImpersonationRequest')
      const error = await errorOf(
        operations.impersonations.approve(call, onlyValue(form, 'id') ?? '', agreement),
        isOver,
      )
      if (error) return again({ error }, statusOf(error))
      done('accountActingAllowed')
    },
    async refuse({ operations, form, context, done, again }) {
      const call = context('refuseMyImpersonationRequest')
      const error = await errorOf(operations.impersonations.refuse(call, onlyValue(form, 'id') ?? ''), isOver)
      if (error) return again({ error }, statusOf(error))
      done('accountActingRefused')
    },
    async withdraw({ operations, form, context, done, again }) {
      const call = context('refuseMyImpersonationRequest')
      const error = await errorOf(operations.impersonations.refuse(call, onlyValue(form, 'id') ?? ''), isOver)
      if (error) return again({ error }, statusOf(error))
      done('accountActingWithdrawn')
    },
    async end({ operations, form, context, done, again }) {
      const error = await errorOf(
        operations.impersonations.end(context('endMyImpersonation'), onlyValue(form, 'id') ?? ''),
        isOver,
      )
      if (error) return again({ error }, statusOf(error))
      done('accountActingEnded')
    },
  },
}
