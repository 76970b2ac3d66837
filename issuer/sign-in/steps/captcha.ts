import type { AttemptOutcome } from '../../interaction/attempts.ts'
import { personAddress } from '../../interaction/person-store.ts'
import { type CaptchaError, captchaPage } from '../../pages/index.ts'
import { takeCaptcha } from '../forms/captcha.ts'
import { onlyValue } from '../forms/read-form.ts'
import { sendToPerson, statusOf } from './codes.ts'
import { clientOf, type SignInStep, type StepAnswer } from './step.ts'

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
    const { operations, interaction, visitor, form, request, count, goOn, again, reload, refuse } = answer
    const choice = onlyValue(form, 'choice')
    if (choice === 'cancel') return goOn({ isCancelled: true })
    if (choice === 'send') {
      const sent = await sendToPerson(answer as StepAnswer<never>, 'captcha', { type: 'email' })
      return sent === 'sent' || sent === 'over' ? reload() : again({ error: sent }, statusOf(sent))
    }
    if (choice === 'solved') {
      const taken = await takeCaptcha(answer)
      if (taken.error !== undefined) return again(taken, taken.error === 'unavailable' ? 503 : 400)
      return taken.interaction.state.captcha ? goOn() : again({ error: 'failed' })
    }
    if (choice !== 'verify') return refuse()
    const code = onlyValue(form, 'code') ?? ''
    if (code.trim() === '') return again({ error: 'missing' })
    const waiting = await operations.codes.waiting(interaction, 'email', 'captcha')
    const attempt: AttemptOutcome = waiting
      ? await operations.codes.verify(interaction, visitor, { proofId: waiting.proofId, code }, request)
      : { outcome: 'invalid_credentials' }
    count('email_code', attempt.outcome)
    if (attempt.outcome === 'verified' || attempt.outcome === 'over') return goOn()
    const isTooMany = attempt.outcome === 'locked' || attempt.outcome === 'too_many_requests'
    return isTooMany ? again({ error: 'too_many_requests' }, 429) : again({ error: 'wrong' })
  },
}
