import { onlyValue } from '../../base/read-form.ts'
import type { AddressType } from '../../interaction/code-proof.ts'
import type { ProfileField } from '../../interaction/required-profile.ts'
import { blockedPage } from '../../pages/index.ts'
import { type AddressEntered, showAddress, submitAddress } from './addresses.ts'
import { wayOnOf } from './blocked.ts'
import { sendableTypes } from './codes.ts'
import { type DetailsEntered, showDetails, submitDetails } from './details.ts'
import { goToProvider, pressedProvider, providerNoticeOf, providersOf } from './providers.ts'
import { pageOf, type SignInStep, type StepView } from './step.ts'

export type Entered = AddressEntered & DetailsEntered

/** The kinds of address of which one is missing: one after the other, or one of two. */
const missingAddress = (missing: readonly ProfileField[] = []): AddressType[] => {
  if (missing.includes('emailOrPhone')) return ['email', 'phone']
  const [first] = (['email', 'phone'] as const).filter((type) => missing.includes(type))
  return first ? [first] : []
}

const purposes = {
  register: { page: 'register', purpose: 'register' },
  profile: { page: 'profile', purpose: 'bind' },
} as const

/** An address first, then everything that is typed in at once. */
const asking = (name: keyof typeof purposes): SignInStep<Entered> => {
  const { page, purpose } = purposes[name]

  const addressOf = async ({ operations, step }: Pick<StepView, 'operations' | 'step'>) => {
    const wanted = missingAddress(step.options.missing)
    const types = (await sendableTypes(operations)).filter((type) => wanted.includes(type))
    return { isMissing: wanted.length > 0, types }
  }

  /** Nothing here would make an account, or complete this one. */
  const closed = (view: StepView) =>
    blockedPage({
      ...pageOf(view),
      ...{ reason: name === 'register' ? 'registration_closed' : 'factor_out_of_reach', requestId: view.requestId },
      ...{ wayOn: wayOnOf(view), other: name === 'register' ? 'back' : 'another' },
    })

  return {
    async show(view, entered) {
      const { isMissing, types } = await addressOf(view)
      const isBeginning = name === 'register' && !view.situation.proofs.some(({ purpose }) => purpose === 'register')
      const by = isBeginning ? { providers: await providersOf(view), providerNotice: providerNoticeOf(view) } : {}
      if (!isMissing) {
        const missing = view.step.options.missing ?? []
        if (missing.length === 0 && (by.providers ?? []).length === 0) return closed(view)
        return showDetails(view, { purpose: page, missing, account: accountOf(view), ...by }, entered)
      }
      if (types.length > 0) return showAddress(view, { page, purpose, types, ...by }, entered)
      return closed(view)
    },

    async submit(answer) {
      const { operations, interaction, step, form, goOn, reload, refuse } = answer
      const choice = onlyValue(form, 'choice')
      if (choice === 'back' && name === 'register') {
        await operations.staging.begin(interaction, 'SignIn')
        return reload()
      }
      if (choice === 'another' && name === 'profile') return goOn({ account: false })
      const provider = pressedProvider(answer)
      if (provider !== undefined && name === 'register') {
        const gone = await goToProvider(answer, provider)
        return gone === 'gone'
          ? undefined
          : answer.again({ usernameError: 'too_many_requests', addressError: 'code_limited' }, 429)
      }
      const { isMissing, types } = await addressOf(answer)
      if (choice === 'details') return isMissing ? reload() : submitDetails(answer, step.options.missing ?? [])
      if (!isMissing) return reload()
      if (!(await submitAddress(answer, { purpose, types }))) refuse()
    },
  }
}

/** What password managers keep the password under. */
const accountOf = ({ situation: { proofs, staged } }: StepView): string | undefined =>
  staged.username ?? proofs.find(({ data }) => data.identifier)?.data.identifier?.value

/** A new account. */
export const register = asking('register')

/** What everybody here has, and this person lacks. */
export const profile = asking('profile')
