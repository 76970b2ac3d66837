import { onlyValue } from '../../base/read-form.ts'
import { allows } from '../../interaction/settings.ts'
import { blockedPage } from '../../pages/index.ts'
import { type AddressEntered, showAddress, submitAddress } from './addresses.ts'
import { wayOnOf } from './blocked.ts'
import { sendableTypes } from './codes.ts'
import { pageOf, type SignInStep } from './step.ts'

/** Whose password is to be set anew: whoever reads a code at the account's address. */
export const reset: SignInStep<AddressEntered> = {
  async show(view, entered) {
    const types = await sendableTypes(view.operations, view.step.options.proofs)
    if (types.length > 0) return showAddress(view, { page: 'reset', purpose: 'reset', types }, entered)
    return blockedPage({
      ...pageOf(view),
      ...{ reason: 'reset_unavailable', requestId: view.requestId, wayOn: wayOnOf(view) },
      other: allows(view.situation.settings, 'SignIn') ? 'back' : 'another',
    })
  },

  async submit(answer) {
    const { operations, interaction, step, form, reload, refuse } = answer
    const choice = onlyValue(form, 'choice')
    if (choice === 'back' || choice === 'another') {
      await operations.staging.begin(interaction, 'SignIn')
      return reload()
    }
    const types = await sendableTypes(operations, step.options.proofs)
    if (!(await submitAddress(answer, { purpose: 'reset', types }))) refuse()
  },
}
