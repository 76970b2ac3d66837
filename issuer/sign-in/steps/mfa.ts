import { onlyValue } from '../../base/read-form.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import { secondFactorNames, secondFactors } from '../../interaction/person-facts.ts'
import { findAccount, personAddress } from '../../interaction/person-store.ts'
import { identifies, type ProofKindName } from '../../interaction/proofs.ts'
import {
  type AskedFactor,
  type FactorError,
  type PageAccount,
  type PageFactor,
  secondFactorPage,
} from '../../pages/index.ts'
import { addressTypeOf, reachable, resendSeconds, type Sent, sendToPerson, statusOf } from './codes.ts'
import { provePasskey } from './passkeys.ts'
import { clientOf, type SignInStep, type StepAnswer, type StepView } from './step.ts'

export interface Entered {
  kind: PageFactor
  error: FactorError
}

/** That it is the person, by one more factor. */
export const mfa: SignInStep<Entered> = {
  async show(view, entered) {
    const { situation, step, locale, action, csrf } = view
    const userId = situation.person?.id
    if (userId === undefined) return undefined
    const account = await enteredBy(view, userId)
    const offered = await reachable(view, inOrder(step.options.proofs))
    const chosen = offered.find((kind) => kind === (entered?.kind ?? situation.state.factor)) ?? offered[0]
    const asked = chosen && (await askFor[chosen](view, userId, chosen as never))
    if (!asked) return undefined
    return secondFactorPage({
      ...{ locale, action, account, asked },
      client: clientOf(view),
      csrf: csrf(userId),
      others: offered.filter((kind) => kind !== chosen),
      error: entered?.error,
    })
  },

  async submit(answer) {
    const { interaction, step, form, token, goOn, reload, refuse } = answer
    const choice = onlyValue(form, 'choice')
    if (choice === 'another') return goOn({ account: false })
    if (choice === 'cancel') return goOn({ isCancelled: true })
    // The page was about somebody else.
    if (token.subject !== interaction.person?.id) return reload()
    const offered = inOrder(step.options.proofs)
    const named = (field: string) => offered.find((kind) => kind === onlyValue(form, field))
    const wanted = named('factor')
    if (wanted) return goOn({ factor: wanted })
    const kind = choice === 'passkey' ? offered.find((one) => one === 'passkey') : named('kind')
    return kind ? await submitFactor(answer, kind, choice) : refuse()
  },
}

/**
 * By what the person began to sign in: not by name or by an address that was not entered, which are not for somebody
 * who has the password alone.
 */
const enteredBy = async ({ query, situation: { proofs } }: StepView, userId: string): Promise<PageAccount> => {
  const { type, value } = proofs.find(identifies)?.data.identifier ?? {}
  if (value === undefined) return { name: '', identifier: (await findAccount(query, userId))?.name ?? '' }
  return { name: '', identifier: type === 'phone' ? `+${value}` : value }
}

/** The better first. */
const inOrder = (kinds: readonly ProofKindName[] = []): PageFactor[] =>
  secondFactorNames.map((name) => secondFactors[name].proof).filter((kind) => kinds.includes(kind))

const askForCode = async (
  { query, operations, interaction }: StepView,
  userId: string,
  kind: 'email_code' | 'phone_code',
): Promise<AskedFactor | undefined> => {
  const type = addressTypeOf[kind]
  const waiting = await operations.codes.waiting(interaction, type, 'mfa')
  const address = await personAddress(query, userId, type)
  return address === undefined ? undefined : { kind, address, isSent: waiting !== undefined }
}

type AskFor<Kind> = (view: StepView, userId: string, kind: Kind) => Promise<AskedFactor | undefined>

const askFor: { [Kind in PageFactor]: AskFor<Kind> } = {
  totp: async (_view, _userId, kind) => ({ kind }),
  backup_code: async (_view, _userId, kind) => ({ kind }),
  email_code: askForCode,
  phone_code: askForCode,
  async passkey({ operations, interaction, visitor }, _userId, kind) {
    const request = await operations.passkeys.authentication(interaction, 'mfa', visitor)
    return request && { kind, ...request }
  },
}

const sendAgain = async (
  answer: StepAnswer<Entered>,
  kind: keyof typeof addressTypeOf,
): Promise<Sent | 'code_too_soon'> => {
  const type = addressTypeOf[kind]
  const waiting = await answer.operations.codes.waiting(answer.interaction, type, 'mfa')
  if (waiting && waiting.age < resendSeconds) return 'code_too_soon'
  return sendToPerson(answer, 'mfa', { type })
}

const submitFactor = async (answer: StepAnswer<Entered>, kind: PageFactor, choice: string | undefined) => {
  const { again, reload, count, goOn, end, refuse } = answer
  if ((kind === 'email_code' || kind === 'phone_code') && choice === 'send') {
    const sent = await sendAgain(answer, kind)
    if (sent === 'sent' || sent === 'over') return reload()
    return again({ kind, error: sent }, sent === 'code_too_soon' ? 429 : statusOf(sent))
  }
  const isMissing = kind !== 'passkey' && (onlyValue(answer.form, 'code') ?? '').trim() === ''
  if (isMissing) return again({ kind, error: 'missing' })
  const outcome = await prove(answer, kind)
  if (!outcome) return refuse()
  if (kind !== 'passkey') count(kind, outcome)
  const wrong = (error: FactorError, status?: number) => again({ kind, error }, status)
  const outcomes: Readonly<Record<AttemptOutcome['outcome'], () => Promise<void>>> = {
    verified: () => goOn(),
    over: () => goOn(),
    invalid_credentials: () => wrong(kind === 'passkey' ? 'passkey' : 'wrong'),
    locked: () => (kind === 'passkey' ? wrong('too_many_requests', 429) : end('factor_locked')),
    too_many_requests: () => wrong('too_many_requests', 429),
    captcha_required: async () => reload(),
  }
  return outcomes[outcome]()
}

/** Undefined for what no page of ours sends. */
const prove = async (answer: StepAnswer<Entered>, kind: PageFactor): Promise<AttemptOutcome['outcome'] | undefined> => {
  const { operations, interaction, visitor, form } = answer
  if (kind === 'passkey') return provePasskey(answer)
  const request = { ...answer.request, status: 400 }
  const code = onlyValue(form, 'code') ?? ''
  if (kind === 'totp' || kind === 'backup_code') {
    const attempt = await operations.secondFactors.prove(interaction, visitor, { kind, code }, request)
    return attempt.outcome
  }
  const waiting = await operations.codes.waiting(interaction, addressTypeOf[kind], 'mfa')
  // None waits any more: its time, or its tries, are over.
  if (!waiting) return 'invalid_credentials'
  const tried = { proofId: waiting.proofId, code }
  return (await operations.codes.verify(interaction, visitor, tried, request)).outcome
}
