import { onlyValue } from '../../base/read-form.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { type DetailsEntered, showDetails, submitDetails } from './details.ts'
import type { SignInStep } from './step.ts'

const missing = ['password'] as const

/** Another password: after the old one was lost, or is too old. */
export const newPassword: SignInStep<DetailsEntered> = {
  async show(view, entered) {
    const { query, interaction, step } = view
    const account = interaction.person && (await findAccount(query, interaction.person.id))
    const purpose = step.reasons.includes('password_expired') ? 'expired' : 'reset'
    return showDetails(view, { purpose, missing, account: account?.identifier }, entered)
  },

  async submit(answer) {
    const { operations, interaction, form, reload } = answer
    if (onlyValue(form, 'choice') === 'back') {
      await operations.staging.begin(interaction, 'SignIn')
      return reload()
    }
    await submitDetails(answer, missing)
  },
}
