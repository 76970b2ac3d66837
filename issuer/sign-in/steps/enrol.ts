import { onlyValue } from '../../base/read-form.ts'
import { registrationCredential } from '../../directory/users/factors/index.ts'
import { readIdentifier } from '../../interaction/identifier.ts'
import { type SecondFactor, secondFactorNames, secondFactors } from '../../interaction/person-facts.ts'
import { type EnrolError, enrolPage, type PageFactor } from '../../pages/index.ts'
import { sendingCaptchaOf } from '../forms/captcha.ts'
import { addressTypeOf, enterCode, reachable, sendCode, statusOf } from './codes.ts'
import { type Editing, newFactor } from './new-factor.ts'
import { passkeyAnswer } from './passkeys.ts'
import { clientOf, type SignInStep, type StepAnswer } from './step.ts'

export interface Entered extends Editing {
  kind: PageFactor
  error?: EnrolError
}

/** Another factor for the person: chosen, set up, and confirmed. It is theirs when the interaction finishes. */
export const enrol: SignInStep<Entered> = {
  async show(view, entered) {
    const { situation, step, locale, action, csrf } = view
    const { isSkippable = false, factors } = step.options
    const offered = await reachable(view, inOrder(factors))
    const only = offered.length === 1 ? offered[0] : undefined
    const chosen = offered.find((kind) => kind === (entered?.kind ?? situation.state.factor)) ?? only
    const setUp = chosen ? await newFactor(view, chosen, entered) : { kind: 'choice' as const, factors: offered }
    if (!setUp) return undefined
    const isNew = setUp.kind === 'totp' && entered?.proofId !== undefined && entered.proofId !== setUp.proofId
    const taken = takenNotices[situation.state.notice ?? '']
    return enrolPage({
      ...{ locale, action, isSkippable, setUp },
      client: clientOf(view),
      csrf: csrf(subjectOf(situation.person)),
      isRequired: step.reasons.includes('required'),
      hasChoice: only === undefined,
      captcha: setUp.kind === 'phone_code' ? await sendingCaptchaOf(view, ['phone']) : undefined,
      error: isNew ? 'secret_new' : (entered?.error ?? (taken === setUp.kind ? 'address_taken' : undefined)),
    })
  },

  async submit(answer) {
    const { situation, step, form, token, goOn, reload, refuse } = answer
    const choice = onlyValue(form, 'choice')
    if (choice === 'cancel') return goOn({ isCancelled: true })
    // The page was about somebody else.
    if (token.subject !== subjectOf(situation.person)) return reload()
    if (choice === 'skip') return step.options.isSkippable ? goOn({ skipsMfa: true }) : refuse()
    if (choice === 'back') return goOn({ factor: null })
    const offered = inOrder(step.options.factors)
    const named = (field: string) => offered.find((kind) => kind === onlyValue(form, field))
    const wanted = named('factor')
    if (wanted) return goOn({ factor: wanted })
    const kind = choice === 'passkey' ? offered.find((one) => one === 'passkey') : named('kind')
    return kind ? await submits[kind](answer, choice, kind as never) : refuse()
  },
}

/** The better first. */
const inOrder = (factors: readonly SecondFactor[] = []): PageFactor[] =>
  secondFactorNames.filter((name) => factors.includes(name)).map((name) => secondFactors[name].proof)

const subjectOf = (person: { id: string } | undefined) => person?.id ?? ''

const takenNotices: Readonly<Record<string, PageFactor>> = { email_taken: 'email_code', phone_taken: 'phone_code' }

type Submit<Kind> = (answer: StepAnswer<Entered>, choice: string | undefined, kind: Kind) => Promise<void>

const submitAddress: Submit<'email_code' | 'phone_code'> = async (answer, choice, kind) => {
  const { operations, interaction, form, again, reload, refuse } = answer
  const type = addressTypeOf[kind]
  if (choice === 'address') {
    await operations.codes.withdraw(interaction, 'bind')
    return reload()
  }
  if (choice === 'send') {
    const entered = onlyValue(form, 'address') ?? ''
    if (entered.trim() === '') return again({ kind, error: 'address_missing' })
    const identifier = readIdentifier(entered)
    if (identifier?.type !== type) return again({ kind, entered, error: 'address_invalid' })
    const sent = await sendCode(answer, 'bind', identifier)
    return sent === 'sent' || sent === 'over' ? reload() : again({ kind, entered, error: sent }, statusOf(sent))
  }
  if (choice !== 'verify') return refuse()
  return enterCode(answer, 'bind', type, (error, status) => again({ kind, error }, status))
}

const submits: { [Kind in PageFactor]: Submit<Kind> } = {
  async totp({ operations, interaction, form, goOn, again }, _choice, kind) {
    const code = onlyValue(form, 'code') ?? ''
    const proofId = onlyValue(form, 'proofId') ?? ''
    if (code.trim() === '') return again({ kind, error: 'missing' })
    const isConfirmed = await operations.enrolment.confirmTotp(interaction, { proofId, code })
    return isConfirmed ? goOn() : again({ kind, proofId, error: 'wrong' })
  },
  async passkey(answer, _choice, kind) {
    const { operations, interaction, visitor, goOn, again } = answer
    const made = passkeyAnswer(answer, registrationCredential)
    const isBound = made !== undefined && (await operations.passkeys.bind(interaction, visitor, made))
    return isBound ? goOn() : again({ kind, error: 'passkey' })
  },
  email_code: submitAddress,
  phone_code: submitAddress,
  async backup_code({ operations, interaction, form, goOn, again }, _choice, kind) {
    const isKept = await operations.enrolment.keepBackupCodes(interaction, onlyValue(form, 'proofId') ?? '')
    return isKept ? goOn() : again({ kind, error: 'codes_new' })
  },
}
