import { onlyValue } from '../../base/read-form.ts'
import { applicationLink } from '../../interaction/start-again.ts'
import type { Reason } from '../../interaction/step.ts'
import { type Block, blockedPage } from '../../pages/index.ts'
import { pageOf, type SignInStep, type StepView } from './step.ts'

/** Where the application is. */
export const wayOnOf = ({ interaction }: Pick<StepView, 'interaction'>): string | undefined =>
  applicationLink(interaction.request)

/** The first that applies. */
const blocks: readonly (readonly [reason: Reason, block: Block])[] = [
  ['user_suspended', 'user_suspended'],
  ['denied_by_rules', 'denied_by_rules'],
  ['create', 'registration_closed'],
  ['required', 'factor_out_of_reach'],
  ['out_of_reach', 'sign_in_closed'],
]

const blockOf = (reasons: readonly Reason[]): Block =>
  blocks.find(([reason]) => reasons.includes(reason))?.[1] ?? 'denied_by_rules'

/** Nothing that this person could do leads on. */
export const blocked: SignInStep<never> = {
  status: 403,

  async show(view) {
    view.operations.noteBlocked(view.interaction, view.visitor, view, view.requestId)
    return blockedPage({
      ...pageOf(view),
      ...{ reason: blockOf(view.step.reasons), requestId: view.requestId, wayOn: wayOnOf(view) },
      other: view.interaction.event === 'SignIn' ? 'another' : 'back',
    })
  },

  async submit({ operations, interaction, form, goOn, reload }) {
    if (onlyValue(form, 'choice') !== 'back') return goOn({ account: false })
    await operations.staging.begin(interaction, 'SignIn')
    await reload()
  },
}
