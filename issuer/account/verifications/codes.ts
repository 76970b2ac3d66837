import { randomInt, timingSafeEqual } from 'node:crypto'
import { newId } from '../../../platform/ids.ts'
import { problem } from '../../base/errors/problems.ts'
import { lockoutPolicyOf } from '../../directory/users/lockout/lockout-policy.ts'
import { checkEmail } from '../../directory/users/registration-rules/email-blocklist.ts'
import { wrongCodes } from '../../interaction/code-proof.ts'
import { type Identifier, readIdentifier } from '../../interaction/identifier.ts'
import { personAddress } from '../../interaction/person-store.ts'
import { codeKindOf } from '../../interaction/settings.ts'
import { countMessage, takeBackCount } from '../../messages/limit-store.ts'
import type { Refusal } from '../../messages/messages.ts'
import { noLongerSignedIn } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import {
  beginVerification,
  completeVerification,
  findVerificationFate,
  findWaitingVerification,
  takeVerificationTry,
  type VerificationId,
} from '../verification-store.ts'
import { holderKey, type VerificationDependencies } from './dependencies.ts'

export type AddressType = 'email' | 'phone'

/** A mail address or a phone number, as the person wrote it. */
export interface AddressIdentifier {
  type: AddressType
  value: string
}

/** Codes by mail and text message: to the person's own address who it is, to another one that the person has it. */
export interface CodeVerifications {
  /** Those that are known to be the person's: codes there prove who it is. */
  send(context: AccountContext, identifier: AddressIdentifier): Promise<VerificationId>
  verify(
    context: AccountContext,
    answer: { id: string; code: string; identifier?: AddressIdentifier | undefined },
  ): Promise<VerificationId>
}

const kinds = [codeKindOf('email'), codeKindOf('phone')]

/** Throws 400 for what is no address of the type. */
export const readAddress = ({ type, value }: AddressIdentifier): Identifier => {
  const read = readIdentifier(value)
  if (read?.type === type) return read
  throw problem('guard.invalid_input', { detail: `identifier: must be of type ${type}` })
}

const refusals: Readonly<Record<Refusal, () => Error>> = {
  limited: () => problem('request.message_rate_limited'),
  no_connector: () => problem('connector.not_found'),
  invalid_recipient: () => problem('guard.invalid_input', { detail: 'identifier: no message can be sent there' }),
}

const newCode = () => String(randomInt(1_000_000)).padStart(6, '0')

export const createCodeVerifications = ({
  database,
  attempts,
  hmac,
  messages,
  settings,
  localeOf,
}: VerificationDependencies): CodeVerifications => {
  const { query } = database
  const digestOf = (id: string, code: string) => hmac('verification-codes', id, code)

  const isOwn = async (
    { userId }: AccountPerson,
    { type, canonical }: Pick<Identifier, 'type' | 'canonical'>,
  ): Promise<boolean> => {
    const own = type === 'username' ? undefined : await personAddress(query, userId, type)
    return own !== undefined && readIdentifier(own)?.canonical === canonical
  }

  const whyNot = async (person: AccountPerson, id: string) => {
    const fate = await findVerificationFate(query, person, id)
    if (fate?.isVerified) return problem('session.verification_failed')
    return problem(fate?.isExpired ? 'verification_code.expired' : 'verification_code.not_found')
  }

  return {
    async send(context, asked) {
      const { person, request } = context
      const identifier = readAddress(asked)
      const { canonical } = identifier
      const { type } = asked
      const purpose = (await isOwn(person, identifier)) ? 'reauth' : 'bind'
      const { verificationCodePolicy, emailBlocklistPolicy } = settings.experience()
      const refusal = type === 'email' && purpose === 'bind' ? checkEmail(canonical, emailBlocklistPolicy) : undefined
      if (refusal) throw problem(refusal)
      const asking = {
        channel: type === 'phone' ? ('sms' as const) : ('email' as const),
        ...{ to: canonical, ip: person.ip, userId: person.userId, request },
        // What strangers have sent there does not keep the owner from it.
        ...(purpose === 'reauth' && { knownDevice: person.sessionId }),
      }
      const permit = await messages.mayBeSent(query, asking)
      if (typeof permit === 'string') throw refusals[permit]()
      const look = person.clientId === undefined ? undefined : await messages.lookOf(person.clientId)
      const { expirationDuration: expiresIn } = verificationCodePolicy
      const id = newId()
      const code = newCode()
      const sent = await database.transaction(async (trx) => {
        const begun = await beginVerification(trx, {
          ...{ id, person, kind: codeKindOf(type), purpose, seconds: expiresIn, secret: digestOf(id, code) },
          data: { identifier: { type, value: canonical } },
        })
        if (!begun) throw noLongerSignedIn()
        const message = await messages.send(trx, {
          ...{ ...asking, permit, look, expiresIn, variables: { code } },
          locale: localeOf({ acceptLanguage: person.acceptLanguage }),
          type: purpose === 'reauth' ? 'UserPermissionValidation' : 'BindNewIdentifier',
        })
        if (typeof message === 'string') throw refusals[message]()
        return { begun, message }
      })
      await sent.message.afterCommit()
      return sent.begun
    },

    async verify(context, { id, code, identifier }) {
      const { person } = context
      const waiting = await findWaitingVerification(query, person, { id, kinds })
      if (!waiting?.data.identifier) throw await whyNot(person, id)
      const { kind, purpose, data } = waiting
      const address = waiting.data.identifier
      const type = address.type === 'phone' ? 'phone' : 'email'
      // Who it is, is said by an address only as long as it is theirs.
      if (purpose === 'reauth' && !(await isOwn(person, { type, canonical: address.value })))
        throw problem('verification_code.not_found')
      const asked = identifier && readAddress(identifier)
      if (asked && (asked.type !== type || asked.canonical !== address.value))
        throw problem(`verification_code.${type}_mismatch`)
      // Whoever guesses at an address that is nobody's here has no more tries for having many sessions.
      const own = purpose === 'reauth' ? [person.sessionId] : []
      const daily = hmac('message-limits', 'wrong codes', address.value, ...own)
      let why = problem('verification_code.code_mismatch')
      const attempt = {
        ...{ kind, account: holderKey(hmac, person), policy: lockoutPolicyOf(settings.experience()) },
        // Whoever guesses the password here has an address of their own too.
        isOfAnybody: purpose !== 'reauth',
        wrong: () => why,
      }
      return attempts.attempt(context, attempt, async () => {
        const { most, seconds } = wrongCodes
        // Counted before anybody compares, and not looked at beyond: then it is no attempt.
        if ((await countMessage(query, daily, most, seconds)) > most) throw problem('rate_limit.exceeded')
        const { maxRetryAttempts } = settings.experience().verificationCodePolicy
        const taken = await takeVerificationTry(query, person, { id, kinds, most: maxRetryAttempts })
        if (taken === undefined || taken === 'exceeded' || !taken.secret) {
          why = taken === 'exceeded' ? problem('verification_code.exceed_max_try') : await whyNot(person, id)
          return undefined
        }
        if (!timingSafeEqual(taken.secret, digestOf(id, code.replace(/\s/g, '')))) return undefined
        await takeBackCount(query, daily)
        return completeVerification(query, person, { id, data, seconds: reauthenticationSeconds })
      })
    },
  }
}
