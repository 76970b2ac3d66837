import { onlyValue } from '../../base/read-form.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { selectAccountPage } from '../../pages/index.ts'
import { clientOf, type SignInStep } from './step.ts'

/** Whether to go on with the session that there is. */
export const selectAccount: SignInStep<never> = {
  async show(view) {
    const { query, situation, locale, action, csrf } = view
    const { session } = situation
    const account = session && (await findAccount(query, session.userId))
    if (!account) return undefined
    return selectAccountPage({ locale, client: clientOf(view), action, csrf: csrf(session.id), account })
  },

  async submit({ form, token, goOn }) {
    const isSame = onlyValue(form, 'choice') === 'continue'
    await goOn({ account: isSame ? { sessionId: token.subject } : false })
  },
}
