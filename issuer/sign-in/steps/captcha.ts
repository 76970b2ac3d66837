import { onlyValue } from '../../base/read-form.ts'
import { personAddress } from '../../interaction/person-store.ts'
import { type CaptchaError, captchaPage } from '../../pages/index.ts'
import { takeCaptcha } from '../forms/captcha.ts'
import { enterCode, sendToPerson, statusOf } from './codes.ts'
import { clientOf, type SignInStep } from './step.ts'

export interface Entered {
  error: CaptchaError
}

/** That it is no machine: a test that the browser does by itself, or a code that comes by mail. */
export const captcha: SignInStep<Entered> = {
  async show(view, entered) {
    const { query, operations, interaction, situation, locale, action, csrf } = view
    const address = situation.person?.id ? await personAddress(query, situation.person.id, 'email') : undefined
    const waiting = await operations.codes.waiting(interaction, 'email', 'captcha')
    return captchaPage({
      ...{ locale, action, address },
      client: clientOf(view),
      csrf: csrf(),
      test: operations.captchas.challenge(interaction),
      isSent: waiting !== undefined,
      error: entered?.error,
    })
  },

  async submit(answer) {
    const { form, goOn, again, reload, refuse } = answer
    const choice = onlyValue(form, 'choice')
    if (choice === 'cancel') return goOn({ isCancelled: true })
    if (choice === 'send') {
      const sent = await sendToPerson(answer, 'captcha', { type: 'email' })
      return sent === 'sent' || sent === 'over' ? reload() : again({ error: sent }, statusOf(sent))
    }
    if (choice === 'solved') {
      const taken = await takeCaptcha(answer)
      if (taken.error !== undefined) return again(taken, taken.error === 'unavailable' ? 503 : 400)
      return taken.interaction.state.captcha ? goOn() : again({ error: 'failed' })
    }
    if (choice !== 'verify') return refuse()
    return enterCode(answer, 'captcha', 'email', (error, status) => again({ error }, status))
  },
}
