import { onlyValue } from '../../base/read-form.ts'
import { readIdentifier } from '../../interaction/identifier.ts'
import { codeKindOf } from '../../interaction/settings.ts'
import { type AccountError, accountAddressPage } from '../../pages/account/index.ts'
import { findWaitingVerification } from '../verification-store.ts'
import type { AccountPage, AccountVisit } from './account-page.ts'
import { errorOf, statusOf } from './errors.ts'

type AddressType = 'email' | 'phone'

interface Entered {
  entered?: string | undefined
  error: AccountError
}

/** A code that was sent to a new address, and is still good. */
const waitingAt = async ({ query, person }: Pick<AccountVisit, 'query' | 'person'>, type: AddressType) => {
  const asked = { kinds: [codeKindOf(type)], purpose: 'bind' } as const
  const waiting = await findWaitingVerification(query, person, asked)
  const address = waiting?.data.identifier?.value
  return waiting && address !== undefined ? { proofId: waiting.id, address } : undefined
}

const addressOf = async ({ operations, person }: AccountVisit, type: AddressType): Promise<string | undefined> => {
  const { primaryEmail, primaryPhone } = await operations.profile.get(person)
  return (type === 'email' ? primaryEmail : primaryPhone) ?? undefined
}

const addressPageOf = (type: AddressType): AccountPage<Entered> => {
  const path = `/account/${type}` as const
  return {
    path,
    title: type,
    group: 'you',
    isShown: ({ settings }) => settings[type] !== 'Off',
    needsConfirmation: true,

    async show(visit, entered) {
      const { settings, parameters, shell } = visit
      const isOther = parameters.has('other') || (entered !== undefined && entered.entered !== undefined)
      return accountAddressPage(shell, {
        type,
        address: await addressOf(visit, type),
        waiting: isOther ? undefined : await waitingAt(visit, type),
        entered: entered?.entered,
        otherHref: `${path}?other=`,
        isEditable: settings[type] === 'Edit',
        error: entered?.error,
      })
    },

    choices: {
      async send(answer) {
        const { operations, form, context, shell, again, goTo } = answer
        if (shell.confirmPath !== undefined) return goTo(shell.confirmPath)
        const entered = onlyValue(form, 'address') ?? ''
        const refuse = (message: AccountError['message']) => again({ entered, error: { message, field: 'address' } })
        if (entered.trim() === '') return refuse(type === 'email' ? 'emailMissing' : 'phoneMissing')
        const read = readIdentifier(entered)
        if (read?.type !== type) return refuse('enrolAddressInvalid')
        const own = await addressOf(answer, type)
        const sending = operations.verifications.codes.send(context('sendMyCode'), { type, value: entered })
        if (own !== undefined && readIdentifier(type === 'phone' ? `+${own}` : own)?.canonical === read.canonical) {
          const error = await errorOf(sending, invalid)
          if (error) return again({ entered, error }, statusOf(error))
          // An address that is known to be theirs already needs no code; one that is not gets one.
          if (!(await waitingAt(answer, type))) return refuse('accountAddressSame')
          return goTo(path)
        }
        const error = await errorOf(sending, invalid)
        if (error) return again({ entered, error }, statusOf(error))
        goTo(path)
      },

      async verify(answer) {
        const { operations, form, context, again, done } = answer
        const waiting = await waitingAt(answer, type)
        const code = (onlyValue(form, 'code') ?? '').slice(0, 32)
        if (!waiting || waiting.proofId !== onlyValue(form, 'proofId')) {
          return again({ entered: '', error: { message: 'codeOver', field: 'address' } })
        }
        if (code.trim() === '') return again({ error: { message: 'codeMissing', field: 'code' } })
        const { proofId: id, address: value } = waiting
        const wrong = await errorOf(operations.verifications.codes.verify(context('verifyMyCode'), { id, code }))
        if (wrong) {
          const isOver = !(await waitingAt(answer, type))
          const error = isOver ? { ...wrong, field: 'address' } : wrong
          return again({ ...(isOver && { entered: '' }), error }, statusOf(wrong))
        }
        const setting = operations.addresses.set(context(operationIds[type].set), type, { value, verificationId: id })
        const error = await errorOf(setting)
        if (error) return again({ entered: '', error }, statusOf(error))
        done('accountSaved')
      },

      async remove({ operations, context, again, done }) {
        const error = await errorOf(operations.addresses.remove(context(operationIds[type].remove), type))
        if (error) return again({ error })
        done('accountRemoved')
      },
    },

    fact: async (visit) => {
      const address = await addressOf(visit, type)
      return address === undefined ? { say: 'accountNone' } : { text: type === 'phone' ? `+${address}` : address }
    },
  }
}

const invalid = {
  'guard.invalid_input': ['enrolAddressInvalid', 'address'],
  'session.email_blocklist.domain_not_allowed': ['codeUnavailable', 'address'],
} as const

const operationIds = {
  email: { set: 'setMyEmail', remove: 'removeMyEmail' },
  phone: { set: 'setMyPhone', remove: 'removeMyPhone' },
} as const

export const email = addressPageOf('email')
export const phone = addressPageOf('phone')
