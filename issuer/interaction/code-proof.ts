import { randomInt, timingSafeEqual } from 'node:crypto'
import type { EventRequest } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import { type LockoutPolicy, secondFactorPolicy } from '../directory/users/lockout/lockout-policy.ts'
import { checkEmail, type EmailRefusal } from '../directory/users/registration-rules/email-blocklist.ts'
import { countMessage, takeBackCount } from '../messages/limit-store.ts'
import type { EnqueuedMessage, Messages, Refusal } from '../messages/messages.ts'
import type { AccountKey } from './account-key.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import type { CaptchaGate } from './captcha-gate.ts'
import { type CodePurpose, codeOwner, codePurposes } from './code-purposes.ts'
import { type Identifier, readIdentifier } from './identifier.ts'
import { endInteraction, type Interaction } from './interaction-store.ts'
import { personAddress } from './person-store.ts'
import { beginProof, findFate, findPendingProof, findWaiting, takeTry, withdrawProofs } from './proof-store.ts'
import { codeKindOf, type SignInSettings } from './settings.ts'
import type { Visitor } from './visitor.ts'

export type CodeSent =
  /** Or would have been, if there were somebody to send it to: nobody is told. */
  | { outcome: 'sent'; proofId: string; afterCommit(): Promise<void> }
  /** `captcha_required`: the test for machines comes first. `over`: the interaction has finished or expired. */
  | { outcome: Refusal | 'captcha_required' | 'over'; refusal?: EmailRefusal | undefined }

/** Why a code did not do; for whoever has the interaction. */
export type CodeRefusal = 'not_found' | 'used' | 'expired' | 'exceeded' | 'wrong_code' | 'wrong_address'

export interface CodeRequest {
  purpose: CodePurpose
  /** `mfa`, `captcha`: the person's own address of this type is taken, whichever is named. */
  identifier: Identifier | { type: 'email' | 'phone' }
  locale: string
  /** Somebody who has the address already is told so instead of getting a code to register with. */
  tellsOwner: boolean
}

export interface CodeProofs {
  /** Sends a code; the one before is void. */
  send(interaction: Interaction, visitor: Visitor, asked: CodeRequest, request: EventRequest): Promise<CodeSent>
  /**
   * One attempt. `identifier`, where it is given, must be the one that the code was sent to. Locked second factors end
   * the interaction.
   */
  verify(
    interaction: Interaction,
    visitor: Visitor,
    answer: { proofId: string; code: string; identifier?: Identifier | undefined; keep?: boolean | undefined },
    request: EventRequest,
  ): Promise<AttemptOutcome & { refusal?: CodeRefusal | undefined }>
  /** The code that waits to be entered: where it was sent. */
  waiting(interaction: Interaction, type: AddressType, purpose: CodePurpose): Promise<WaitingCode | undefined>
  /** Ends what waits, or was proven of nobody, for another address; but for one. */
  withdraw(interaction: Interaction, purpose: CodePurpose, exceptProofId?: string): Promise<void>
  /** Where codes can be sent to at all. */
  channels(): Promise<AddressType[]>
}

export type AddressType = 'email' | 'phone'

export interface WaitingCode {
  proofId: string
  type: AddressType
  /** In its canonical form; a phone number's digits. */
  address: string
  /** Seconds since it was sent. */
  age: number
  /** It is not the first one to this address. */
  isAnother: boolean
}

export interface CodeProofDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  attempts: Attempts
  accountKey: AccountKey
  captchas: CaptchaGate
  hmac: Hmac
  messages: Messages
  lockout: () => LockoutPolicy
  settings: () => SignInSettings & Pick<SignInExperience, 'verificationCodePolicy' | 'emailBlocklistPolicy'>
}

const addressTypes = ['email', 'phone'] as const
const channelOf = (type: AddressType) => (type === 'phone' ? ('sms' as const) : ('email' as const))
/** Of one recipient in a day, whatever they were for; each known browser of the owner has its own. */
export const wrongCodes = { most: 15, seconds: 86_400 } as const

const tooManyWrong = Symbol('too many wrong codes')

const newCode = () => String(randomInt(1_000_000)).padStart(6, '0')

/** Codes by mail and text message. They stand in the database as HMACs. */
export const createCodeProofs = ({
  database,
  attempts,
  accountKey,
  captchas,
  hmac,
  messages,
  lockout,
  settings,
}: CodeProofDependencies): CodeProofs => {
  const { query } = database
  const keys = lockoutKeys(hmac)
  const digestOf = (proofId: string, code: string) => hmac('verification-codes', proofId, code)

  const whyNot = async (interactionId: string, proofId: string): Promise<CodeRefusal> => {
    const fate = await findFate(query, interactionId, proofId)
    if (!fate) return 'not_found'
    if (fate.isVerified) return 'used'
    if (fate.tries > settings().verificationCodePolicy.maxRetryAttempts) return 'exceeded'
    return fate.isExpired ? 'expired' : 'not_found'
  }

  const ownAddress = async ({ person }: Interaction, type: Identifier['type']): Promise<Identifier | undefined> => {
    if (!person || type === 'username') return undefined
    const own = await personAddress(query, person.id, type)
    return own === undefined ? undefined : readIdentifier(own)
  }

  return {
    async send(interaction, visitor, { purpose, identifier: asked, locale, tellsOwner }, request) {
      const { message, to, sends } = codePurposes[purpose]
      const isNamed = 'canonical' in asked && to !== 'own'
      const identifier = isNamed ? asked : await ownAddress(interaction, asked.type)
      if (!identifier || identifier.type === 'username') return { outcome: 'invalid_recipient' }
      const { type, canonical } = identifier
      const { person } = await accountKey(identifier, visitor)
      const refusal =
        type === 'email' && to === 'new' ? checkEmail(canonical, settings().emailBlocklistPolicy) : undefined
      if (refusal) return { outcome: 'invalid_recipient', refusal }
      const isDeviceKnown = person?.isDeviceKnown === true
      // Whoever is known here has been tested already. A mail has limits of its own, and takes the place of the test
      // where there are no scripts; a text message costs somebody money.
      const isFirst =
        type === 'phone' && !interaction.person && (await captchas.isDue(interaction, visitor, { isDeviceKnown }))
      if (isFirst) return { outcome: 'captcha_required' }
      const asking = {
        channel: channelOf(type),
        to: canonical,
        ip: visitor.origin.ip,
        ...(isDeviceKnown && visitor.device !== undefined && { knownDevice: visitor.device }),
        ...(person && { userId: person.id }),
        request,
      }
      const permit = await messages.mayBeSent(query, asking)
      if (typeof permit === 'string') return { outcome: permit }

      const due = sends?.(person, settings()) ?? 'code'
      const isTold = due === 'notice' && tellsOwner
      const proofId = newId()
      const code = newCode()
      const look = await messages.lookOf(interaction.client.id)
      const { expirationDuration } = settings().verificationCodePolicy
      const sent = await database.transaction(async (trx): Promise<EnqueuedMessage | 'over' | Refusal | undefined> => {
        const isBegun = await beginProof(trx, {
          id: proofId,
          interactionId: interaction.id,
          userId: codeOwner(purpose, { here: interaction.person }),
          kind: codeKindOf(type),
          purpose,
          data: { identifier: { type, value: canonical } },
          // Nobody has the code of a message that is not sent.
          secret: digestOf(proofId, isTold || due === 'nothing' ? newId() : code),
          seconds: expirationDuration,
        })
        if (isBegun === undefined) return 'over'
        if (due === 'nothing') return undefined
        const common = { ...asking, permit, locale, look, expiresIn: expirationDuration }
        return isTold
          ? messages.send(trx, { ...common, type: 'AlreadyRegistered', variables: {} })
          : messages.send(trx, { ...common, type: message, variables: { code } })
      })
      if (typeof sent === 'string') return { outcome: sent }
      return { outcome: 'sent', proofId, afterCommit: () => sent?.afterCommit() ?? Promise.resolve() }
    },

    async verify(interaction, visitor, { proofId, code, identifier, keep }, request) {
      const pending = await findWaiting(query, interaction.id, proofId)
      // Something else that waits, such as a passkey's challenge, has no address.
      if (!pending?.data.identifier)
        return { outcome: 'invalid_credentials', refusal: await whyNot(interaction.id, proofId) }
      const { kind, purpose } = pending
      const address = pending.data.identifier
      const known = readIdentifier(address.type === 'phone' ? `+${address.value}` : address.value)
      if (!known) return { outcome: 'invalid_credentials', refusal: 'not_found' }
      const { person, account } = await accountKey(known, visitor)
      const isSecond = purpose === 'mfa'
      const counted = isSecond
        ? keys.secondFactor(interaction.person?.id ?? '')
        : purpose === 'reset'
          ? keys.recovery(person?.id ?? known.canonical)
          : account
      let refusal: CodeRefusal | undefined
      const device = person?.isDeviceKnown ? visitor.device : undefined
      const daily = hmac('message-limits', 'wrong codes', address.value, ...(device === undefined ? [] : [device]))
      const attempt = attempts.attempt(
        {
          interaction,
          visitor,
          request,
          kind,
          account: counted,
          policy: isSecond ? secondFactorPolicy : lockout(),
          person: isSecond ? interaction.person : codePurposes[purpose].to === 'new' ? undefined : person,
          entered: address,
        },
        async () => {
          const { most, seconds } = wrongCodes
          // Counted before anybody compares, and not looked at beyond: then it is no attempt.
          if ((await countMessage(query, daily, most, seconds)) > most) throw tooManyWrong
          const taken = await takeTry(query, {
            id: proofId,
            interactionId: interaction.id,
            kinds: [kind],
            purposes: [purpose],
            most: settings().verificationCodePolicy.maxRetryAttempts,
          })
          const given = digestOf(proofId, code.replace(/\s/g, ''))
          if (!taken?.secret) {
            refusal = await whyNot(interaction.id, proofId)
            return undefined
          }
          if (identifier && (identifier.type !== address.type || identifier.canonical !== address.value)) {
            refusal = 'wrong_address'
            return undefined
          }
          if (!timingSafeEqual(taken.secret, given)) {
            refusal = 'wrong_code'
            return undefined
          }
          await takeBackCount(query, daily)
          return {
            userId: codeOwner(purpose, { named: person, here: interaction.person }),
            purpose,
            data: {},
            pendingId: proofId,
            ...(keep !== undefined && { decision: { keep } }),
          }
        },
      )
      const outcome = await attempt.catch((error): AttemptOutcome => {
        if (error === tooManyWrong) return { outcome: 'too_many_requests' }
        throw error
      })
      if (isSecond && outcome.outcome === 'locked') await endInteraction(query, interaction.id)
      return { ...outcome, refusal }
    },

    async waiting(interaction, type, purpose) {
      const pending = await findPendingProof(query, interaction.id, codeKindOf(type), purpose)
      const address = pending?.data.identifier?.value
      if (!pending || address === undefined) return undefined
      return { proofId: pending.id, type, address, age: pending.age, isAnother: pending.isAnother }
    },

    withdraw: (interaction, purpose, except) =>
      withdrawProofs(query, {
        ...{ interactionId: interaction.id, kinds: addressTypes.map(codeKindOf), purpose, except },
      }),

    async channels() {
      return addressTypes.filter((type) => messages.isAvailable(channelOf(type)))
    },
  }
}
