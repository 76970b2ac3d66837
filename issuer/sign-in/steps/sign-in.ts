import type { AttemptOutcome } from '../../interaction/attempts.ts'
import { readIdentifier } from '../../interaction/identifier.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { type SignInError, signInPage } from '../../pages/index.ts'
import { onlyValue } from '../forms/read-form.ts'
import { clientOf, type SignInStep } from './step.ts'

interface Entered {
  identifier: string
  keep: boolean
  error: SignInError
  minutes?: number | undefined
}

/** Of a password, in bytes of UTF-8. */
const maxPasswordBytes = 1_024

/** Who somebody is. */
export const signIn: SignInStep<Entered> = {
  async show(view, entered) {
    const { query, interaction, situation, step, locale, action, csrf } = view
    const { session } = situation
    const again = (['login', 'max_age', 'acr'] as const).find((reason) => step.reasons.includes(reason))
    const isSamePerson =
      again !== undefined && !step.reasons.includes('another_account') && !step.reasons.includes('hint')
    const account = isSamePerson && session && !entered ? await findAccount(query, session.userId) : undefined
    return signInPage({
      locale,
      client: clientOf(view),
      action,
      csrf: csrf(),
      identifier: entered?.identifier ?? interaction.request.loginHint ?? account?.identifier,
      keep: entered?.keep ?? situation.state.keep,
      error: entered?.error,
      minutes: entered?.minutes,
      reasons: isSamePerson ? again : undefined,
      canCancel: true,
    })
  },

  async submit({ operations, interaction, visitor, form, request, count, goOn, again }) {
    if (onlyValue(form, 'choice') === 'cancel') return goOn({ isCancelled: true })
    const identifier = onlyValue(form, 'identifier') ?? ''
    const password = onlyValue(form, 'password') ?? ''
    const keep = onlyValue(form, 'keep') === 'yes'
    const wrong = (error: SignInError, status?: number, minutes?: number) =>
      again({ identifier, keep, error, minutes }, status)
    if (identifier.trim() === '') return wrong('identifier_missing')
    if (password === '') return wrong('password_missing')
    const read = readIdentifier(identifier)
    if (!read || Buffer.byteLength(password) > maxPasswordBytes) return wrong('too_long')
    const input = { identifier: read, password, keep }
    const attempt = await operations.passwords.prove(interaction, visitor, input, { ...request, status: 400 })
    count('password', attempt.outcome)
    const outcomes: Readonly<Record<AttemptOutcome['outcome'], () => Promise<void>>> = {
      verified: () => goOn(),
      over: () => goOn(),
      invalid_credentials: () => wrong('invalid_credentials'),
      locked: () => wrong('locked', 400, attempt.outcome === 'locked' ? attempt.minutes : undefined),
      too_many_requests: () => wrong('too_many_requests', 429),
      captcha_required: () => wrong('too_many_requests', 429),
    }
    return outcomes[attempt.outcome]()
  },
}
