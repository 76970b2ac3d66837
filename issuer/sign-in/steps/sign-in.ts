import { onlyValue } from '../../base/read-form.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import { readIdentifier } from '../../interaction/identifier.ts'
import type { InteractionEventName, InteractionState } from '../../interaction/interaction-state.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { identifies } from '../../interaction/proofs.ts'
import { allows, recoveryFactors } from '../../interaction/settings.ts'
import { noAccountPage, type SignInError, signInPage } from '../../pages/index.ts'
import { captchaOf, takeCaptcha } from '../forms/captcha.ts'
import {
  type CodeEntered,
  readAddress,
  sendableTypes,
  sendCode,
  showCode,
  statusOf,
  submitCode,
  waitingCode,
} from './codes.ts'
import { provePasskey } from './passkeys.ts'
import { enterpriseOf, goToProvider, pressedProvider, providerNoticeOf, providersOf } from './providers.ts'
import { maxPasswordBytes, pageOf, type SignInStep, type StepAnswer, type StepView } from './step.ts'

export interface SignInEntered {
  identifier: string
  keep: boolean
  error: SignInError
  minutes?: number | undefined
}
export type Entered = SignInEntered | CodeEntered

const isCode = (entered: Entered | undefined): entered is CodeEntered => entered !== undefined && 'codeError' in entered

/** Who somebody is. */
export const signIn: SignInStep<Entered> = {
  async show(view, entered) {
    const { interaction, situation } = view
    // Without settings that send codes there is none to look for.
    const types = await sendableTypes(view.operations, view.step.options.proofs)
    if (types.length > 0) {
      const nobody = situation.proofs.find((proof) => identifies(proof) && proof.userId === null)?.data.identifier
      if (nobody && nobody.type !== 'username' && allows(situation.settings, 'Register'))
        return noAccountPage({ ...pageOf(view), type: nobody.type, address: nobody.value })
      const waiting = await waitingCode(view, 'sign_in')
      if (waiting && (!entered || isCode(entered))) return showCode(view, 'sign_in', waiting, entered)
    }
    const again = (['login', 'max_age', 'acr', 'required', 'another_factor'] as const).find((reason) =>
      view.step.reasons.includes(reason),
    )
    const isSamePerson =
      again !== undefined && !view.step.reasons.includes('another_account') && !view.step.reasons.includes('hint')
    const { session, settings } = situation
    const userId = situation.person?.id ?? session?.userId
    const account = isSamePerson && userId !== undefined && !entered ? await findAccount(view.query, userId) : undefined
    const typed = isCode(entered) ? { error: 'code_over' as const } : entered
    const recovery = await sendableTypes(view.operations, recoveryFactors(settings))
    const notice = providerNoticeOf(view)
    return signInPage({
      ...pageOf(view),
      identifier: notice?.email ?? interaction.request.loginHint ?? account?.identifier,
      keep: situation.state.keep,
      ...typed,
      reasons: isSamePerson ? again : undefined,
      canCancel: true,
      identifiers: settings.signIn.methods.map(({ identifier }) => identifier),
      byPassword: view.step.options.proofs?.includes('password') ?? true,
      byCode: types,
      canRegister: allows(settings, 'Register'),
      canReset: recovery.length > 0,
      isPasswordChanged: situation.state.notice === 'password_changed',
      passkey: await passkeyOf(view),
      captcha: await captchaOf(view),
      providers: await providersOf(view),
      hasEnterprises: settings.singleSignOnEnabled,
      providerNotice: notice,
    })
  },

  async submit(answer) {
    const choice = onlyValue(answer.form, 'choice') ?? ''
    if (Object.hasOwn(choices, choice)) return choices[choice]!(answer)
    const provider = pressedProvider(answer)
    if (provider !== undefined) return byProvider(answer, provider)
    if (!(await submitCode(answer as StepAnswer<CodeEntered>, 'sign_in'))) await byPassword(answer)
  },
}

const passkeyOf = async ({ operations, interaction, visitor, situation: { settings } }: StepView) => {
  const { enabled, showPasskeyButton, allowAutofill } = settings.passkeySignIn
  if (!enabled) return undefined
  const begun = await operations.passkeys.authentication(interaction, 'sign_in', visitor)
  return begun && { ...begun, hasButton: showPasskeyButton, isConditional: allowAutofill }
}

type Answer = StepAnswer<Entered>

/** Begins something else, where the settings let people. */
const beginning =
  (event: InteractionEventName) =>
  async ({ operations, interaction, settings, reload }: Answer) => {
    const mayBegin = event === 'ForgotPassword' ? recoveryFactors(settings).length > 0 : allows(settings, event)
    if (mayBegin) await operations.staging.begin(interaction, event)
    await reload()
  }

const typedIn = ({ form, again }: Answer) => {
  const identifier = onlyValue(form, 'identifier') ?? ''
  const keep = onlyValue(form, 'keep') === 'yes'
  const wrong = (error: SignInError, status?: number, minutes?: number) =>
    again({ identifier, keep, error, minutes }, status)
  return { identifier, keep, wrong }
}

/** What the script of the page found out. */
const browserOf = ({ form }: Answer): InteractionState =>
  onlyValue(form, 'makesPasskeys') === 'yes' ? { makesPasskeys: true } : {}

const byProvider = async (answer: Answer, connectorId: string, typed?: string) => {
  const { wrong } = typedIn(answer)
  if ((await goToProvider(answer, connectorId, typed)) === 'too_many_requests') await wrong('too_many_requests', 429)
}

/** People of an enterprise are sent there, whichever button they press. False: this is none of them. */
const wentToEnterprise = async (answer: Answer): Promise<boolean> => {
  const { identifier, keep } = typedIn(answer)
  const enterprise = await enterpriseOf(answer, identifier)
  if (!enterprise) return false
  if (keep) await answer.keep({ keep })
  await byProvider(answer, enterprise.id, identifier.trim())
  return true
}

/** A code to the address that was typed in. */
const byCode = async (answer: Answer) => {
  const { identifier, keep, wrong } = typedIn(answer)
  if (await wentToEnterprise(answer)) return
  const types = await sendableTypes(answer.operations, answer.step.options.proofs)
  const address = readAddress(identifier, types)
  if (!address) return wrong('address_missing')
  const sent = await sendCode(answer, 'sign_in', address)
  if (sent === 'sent' || sent === 'over') return answer.goOn({ keep, ...browserOf(answer) })
  await wrong(sent, statusOf(sent))
}

const byPassword = async (answer: Answer) => {
  const { operations, visitor, form, request, count, goOn } = answer
  const { identifier, keep, wrong } = typedIn(answer)
  if (await wentToEnterprise(answer)) return
  const taken = await takeCaptcha(answer)
  if (taken.error !== undefined) return wrong(`captcha_${taken.error}`, taken.error === 'unavailable' ? 503 : 400)
  const { interaction } = taken
  const password = onlyValue(form, 'password') ?? ''
  if (identifier.trim() === '') return wrong('identifier_missing')
  if (password === '') return wrong('password_missing')
  const read = readIdentifier(identifier)
  if (!read || Buffer.byteLength(password) > maxPasswordBytes) return wrong('too_long')
  const input = { identifier: read, password, keep }
  const attempt = await operations.passwords.prove(interaction, visitor, input, { ...request, status: 400 })
  count('password', attempt.outcome)
  const outcomes: Readonly<Record<AttemptOutcome['outcome'], () => Promise<void>>> = {
    verified: () => goOn(browserOf(answer)),
    over: () => goOn(),
    invalid_credentials: () => wrong('invalid_credentials'),
    locked: () => wrong('locked', 400, attempt.outcome === 'locked' ? attempt.minutes : undefined),
    captcha_required: () => wrong('captcha_failed'),
    too_many_requests: () => wrong('too_many_requests', 429),
  }
  return outcomes[attempt.outcome]()
}

const byPasskey = async (answer: Answer) => {
  const { wrong } = typedIn(answer)
  const outcome = await provePasskey(answer)
  if (outcome === 'verified' || outcome === 'over') return answer.goOn()
  if (outcome === 'too_many_requests') return wrong('too_many_requests', 429)
  await wrong('passkey_failed')
}

/** All other buttons are those of a code's page, or sign in with a password. */
const choices: Readonly<Record<string, (answer: Answer) => Promise<void>>> = {
  cancel: ({ goOn }) => goOn({ isCancelled: true }),
  register: beginning('Register'),
  reset: beginning('ForgotPassword'),
  code: byCode,
  async enterprise(answer) {
    if (!(await wentToEnterprise(answer))) await typedIn(answer).wrong('enterprise_unknown')
  },
  passkey: byPasskey,
  async begin_account({ operations, interaction, settings, reload }) {
    if (allows(settings, 'Register')) await operations.staging.beginAccount(interaction)
    await reload()
  },
}
