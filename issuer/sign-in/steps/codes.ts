import { onlyValue } from '../../base/read-form.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import type { AddressType, WaitingCode } from '../../interaction/code-proof.ts'
import { type Identifier, readIdentifier } from '../../interaction/identifier.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import type { ProofKindName, ProofPurpose } from '../../interaction/proofs.ts'
import { allows, codeKindOf } from '../../interaction/settings.ts'
import { type CodeError, codePage, type Page, type SendError } from '../../pages/index.ts'
import { takeCaptcha } from '../forms/captcha.ts'
import { pageOf, type StepAnswer, type StepView } from './step.ts'

/** The page for a code, which several steps have: what waits in the database says whether it is due. */

export const addressTypes = ['email', 'phone'] as const satisfies AddressType[]

/** The kind of address that a code of this kind goes to. */
export const addressTypeOf = { email_code: 'email', phone_code: 'phone' } as const

/** A form, whatever its page shows again. */
type AnyAnswer = Omit<StepAnswer<never>, 'again'>

/** What was wrong with a code. */
export interface CodeEntered {
  codeError: CodeError
  minutes?: number | undefined
}

/** The addresses that these proofs can be had of, where codes can be sent to. */
export const sendableTypes = async (
  operations: InteractionOperations,
  proofs: readonly ProofKindName[] = addressTypes.map(codeKindOf),
): Promise<AddressType[]> => {
  const wanted = addressTypes.filter((type) => proofs.includes(codeKindOf(type)))
  if (wanted.length === 0) return []
  const channels = await operations.codes.channels()
  return wanted.filter((type) => channels.includes(type))
}

/** Without those by message that nothing sends, unless there are no others. */
export const reachable = async <Kind extends ProofKindName>(
  { operations }: Pick<StepView, 'operations'>,
  kinds: readonly Kind[],
): Promise<readonly Kind[]> => {
  const sendable: ProofKindName[] = (await operations.codes.channels()).map(codeKindOf)
  const byMessage: ProofKindName[] = addressTypes.map(codeKindOf)
  const usable = kinds.filter((kind) => !byMessage.includes(kind) || sendable.includes(kind))
  return usable.length > 0 ? usable : kinds
}

export const waitingCode = async (
  { operations, interaction }: Pick<StepView, 'operations' | 'interaction'>,
  purpose: ProofPurpose,
): Promise<WaitingCode | undefined> => {
  for (const type of addressTypes) {
    const waiting = await operations.codes.waiting(interaction, type, purpose)
    if (waiting) return waiting
  }
  return undefined
}

export const showCode = (
  view: StepView,
  purpose: ProofPurpose,
  waiting: WaitingCode,
  entered?: Partial<CodeEntered>,
): Page => {
  const { settings } = view.situation
  const { type, address, isAnother } = waiting
  return codePage({
    ...pageOf(view),
    ...{ type, address, isAnother },
    isOnlyForAccounts: purpose === 'reset' || (purpose === 'sign_in' && !allows(settings, 'Register')),
    minutesGood: Math.floor(settings.verificationCodePolicy.expirationDuration / 60),
    error: entered?.codeError,
    minutes: entered?.minutes,
  })
}

/** Who has an address of one of these kinds; what is typed wrong is undefined. */
export const readAddress = (
  typed: string,
  types: readonly AddressType[],
): (Identifier & { type: AddressType }) | undefined => {
  const read = readIdentifier(typed)
  if (!read || read.type === 'username' || !types.includes(read.type)) return undefined
  return { ...read, type: read.type }
}

export type Sent = 'sent' | 'over' | Exclude<SendError, 'address_missing' | CaptchaProblem>
type CaptchaProblem = 'captcha_failed' | 'captcha_unavailable'

/**
 * Sends a code; whatever waited for the same purpose, at any address, is void. A text message to somebody unknown costs
 * somebody money: the form's answer to the test for machines is taken before.
 */
export const sendCode = async (
  answer: AnyAnswer,
  purpose: ProofPurpose,
  identifier: Identifier | { type: AddressType },
): Promise<Sent | CaptchaProblem> => {
  const { operations, visitor, locale, request } = answer
  const taken = identifier.type === 'phone' ? await takeCaptcha(answer) : { interaction: answer.interaction }
  if (taken.error !== undefined) return `captcha_${taken.error}`
  const { interaction } = taken
  const asked = { purpose, identifier, locale, tellsOwner: true }
  const sent = await operations.codes.send(interaction, visitor, asked, request)
  if (sent.outcome === 'over') return 'over'
  if (sent.outcome === 'captcha_required') return 'captcha_failed'
  if (sent.outcome !== 'sent') return sent.outcome === 'limited' ? 'code_limited' : 'code_unavailable'
  await operations.codes.withdraw(interaction, purpose, sent.proofId)
  await sent.afterCommit()
  return 'sent'
}

/** The same for somebody known, who is not tested for it. */
export const sendToPerson = async (...asked: Parameters<typeof sendCode>): Promise<Sent> => {
  const sent = await sendCode(...asked)
  return sent === 'captcha_failed' || sent === 'captcha_unavailable' ? 'code_unavailable' : sent
}

/** One attempt with the code that was entered on a page for this kind of address: goes on, or says what was wrong. */
export const enterCode = async (
  { operations, interaction, visitor, form, request, count, goOn }: AnyAnswer,
  purpose: ProofPurpose,
  type: AddressType,
  say: (error: 'missing' | 'wrong' | 'too_many_requests', status?: number) => Promise<void>,
): Promise<void> => {
  const code = onlyValue(form, 'code') ?? ''
  if (code.trim() === '') return say('missing')
  const waiting = await operations.codes.waiting(interaction, type, purpose)
  if (!waiting) return say('wrong')
  const tried = { proofId: waiting.proofId, code }
  const { outcome } = await operations.codes.verify(interaction, visitor, tried, request)
  count(codeKindOf(type), outcome)
  if (outcome === 'verified' || outcome === 'over') return goOn()
  const isTooMany = outcome === 'locked' || outcome === 'too_many_requests'
  return isTooMany ? say('too_many_requests', 429) : say('wrong')
}

/** Between two codes to one address, in seconds. */
export const resendSeconds = 60

const errors: Readonly<Record<Exclude<AttemptOutcome['outcome'], 'verified' | 'over'>, CodeError>> = {
  invalid_credentials: 'code_wrong',
  locked: 'locked',
  too_many_requests: 'too_many_requests',
  captcha_required: 'too_many_requests',
}

/** What the buttons of the code's page mean. False: the form was of another page. */
export const submitCode = async (answer: StepAnswer<CodeEntered>, purpose: ProofPurpose): Promise<boolean> => {
  const { operations, interaction, visitor, form, request, count, goOn, reload, again } = answer
  const handle = {
    async verify() {
      const waiting = await waitingCode(answer, purpose)
      const code = onlyValue(form, 'code') ?? ''
      if (waiting && code.trim() === '') return again({ codeError: 'code_missing' })
      // Without one that waits there is nothing to try: the page tells that it is over.
      if (!waiting) return again({ codeError: 'code_wrong' })
      const tried = { proofId: waiting.proofId, code }
      const attempt = await operations.codes.verify(interaction, visitor, tried, { ...request, status: 400 })
      count(codeKindOf(waiting.type), attempt.outcome)
      if (attempt.outcome === 'verified' || attempt.outcome === 'over') return goOn()
      const minutes = attempt.outcome === 'locked' ? attempt.minutes : undefined
      const status = attempt.outcome === 'too_many_requests' ? 429 : 400
      await again({ codeError: errors[attempt.outcome], minutes }, status)
    },
    async resend() {
      const waiting = await waitingCode(answer, purpose)
      if (!waiting) return reload()
      if (waiting.age < resendSeconds) return again({ codeError: 'code_too_soon' }, 429)
      const identifier = readIdentifier(waiting.type === 'phone' ? `+${waiting.address}` : waiting.address)
      if (!identifier) return reload()
      const sent = await sendCode(answer, purpose, identifier)
      if (sent === 'sent' || sent === 'over') return reload()
      // The test stands on the page for the address.
      if (sent === 'captcha_failed' || sent === 'captcha_unavailable') return handle.other()
      await again({ codeError: sent }, statusOf(sent))
    },
    async other() {
      await operations.codes.withdraw(interaction, purpose)
      await reload()
    },
  }
  const choice = onlyValue(form, 'choice') ?? ''
  if (!Object.hasOwn(handle, choice)) return false
  await handle[choice as keyof typeof handle]()
  return true
}

const statuses: Readonly<Record<string, number>> = { code_limited: 429, captcha_unavailable: 503 }

/** Of an answer that nothing was sent. */
export const statusOf = (sent: Sent | CaptchaProblem): number => statuses[sent] ?? 400
