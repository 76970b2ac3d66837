import { onlyValue } from '../../base/read-form.ts'
import { termsPage } from '../../pages/index.ts'
import { clientOf, type SignInStep } from './step.ts'

/** What has to be agreed to. */
export const terms: SignInStep<never> = {
  async show(view) {
    const { settings, locale, action, csrf } = view
    const { termsOfUseUrl, privacyPolicyUrl } = settings
    if (termsOfUseUrl === null) return undefined
    return termsPage({
      ...{ locale, action },
      client: clientOf(view),
      csrf: csrf(),
      termsOfUse: termsOfUseUrl,
      privacyPolicy: privacyPolicyUrl ?? undefined,
    })
  },

  async submit({ form, goOn, refuse }) {
    const choice = onlyValue(form, 'choice')
    if (choice === 'cancel') return goOn({ isCancelled: true })
    return choice === 'agree' ? goOn({ terms: true }) : refuse()
  },
}
