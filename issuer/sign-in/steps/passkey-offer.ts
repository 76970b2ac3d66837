import { onlyValue } from '../../base/read-form.ts'
import { registrationCredential } from '../../directory/users/factors/index.ts'
import { passkeyOfferPage } from '../../pages/index.ts'
import { ownerOf } from './new-factor.ts'
import { passkeyAnswer } from './passkeys.ts'
import { clientOf, type SignInStep } from './step.ts'

/** A passkey for next time. It is the person's when the interaction finishes, and nobody has to have one. */
export const passkeyOffer: SignInStep<{ isFailed: true }> = {
  async show(view, entered) {
    const { operations, interaction, situation, step, locale, action, csrf } = view
    const { person, settings } = situation
    if (!person) return undefined
    // What was refused once would be again: by itself the browser would make one after the other.
    const isConditional = step.options.isConditional === true && entered === undefined
    const begun = await operations.passkeys.registration(interaction, { ...(await ownerOf(view)), isConditional })
    return (
      begun &&
      passkeyOfferPage({
        ...{ locale, action, isConditional, isFailed: entered !== undefined },
        ...begun,
        isSecondFactor: settings.mfa.factors.includes('WebAuthn'),
        client: clientOf(view),
        csrf: csrf(person.id),
      })
    )
  },

  async submit(answer) {
    const { operations, interaction, visitor, situation, form, token, goOn, again, reload, refuse } = answer
    // The page was about somebody else.
    if (token.subject !== situation.person?.id) return reload()
    const choice = onlyValue(form, 'choice')
    if (choice === 'skip') return goOn({ skipsPasskey: true })
    if (choice !== 'passkey') return refuse()
    const made = passkeyAnswer(answer, registrationCredential)
    const isBound = made !== undefined && (await operations.passkeys.bind(interaction, visitor, made))
    return isBound ? goOn() : again({ isFailed: true })
  },
}
