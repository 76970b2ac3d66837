import { setTimeout as delay } from 'node:timers/promises'
import { type EventRequest, recordEvent } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { lockAccount } from '../directory/users/lockout/failure-store.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import type { CaptchaGate } from './captcha-gate.ts'
import {
  addressPolicy,
  type Counted,
  countAttempt,
  type FailureKeys,
  forgiveAttempt,
  succeedAttempt,
} from './failure-store.ts'
import { leaveTurn, turnSeconds } from './interaction-changes-store.ts'
import { type Interaction, isInteractionOpen } from './interaction-store.ts'
import type { NewProof } from './proof-store.ts'
import { identifies, type ProofKindName, proofKinds } from './proofs.ts'
import type { Visitor } from './visitor.ts'

export type AttemptOutcome =
  | { outcome: 'verified'; proofId: string }
  /** What was shown proves nothing. Why is told to nobody. */
  | {
      outcome: 'invalid_credentials'
      /** It was the last one that is allowed. */
      isLast?: boolean
    }
  | { outcome: 'locked'; minutes: number }
  /** From this address. */
  | { outcome: 'too_many_requests' }
  /** The test for machines comes first. */
  | { outcome: 'captcha_required' }
  /** The interaction has finished or expired. */
  | { outcome: 'over' }

/** One try to prove something. */
export interface Attempt {
  interaction: Interaction
  visitor: Visitor
  request: EventRequest
  kind: ProofKindName
  /** What fails, beside the address: an account, a device of one, its second factors. */
  account: Buffer
  policy: LockoutPolicy
  /** Whose account it is, if it is anybody's. */
  person: { id: string } | undefined
  /** What was entered; the event of a lock tells it. */
  entered: { type: 'username' | 'email' | 'phone' | 'userId'; value: string }
}

/** What is kept of a success. */
export type Verified = Pick<NewProof, 'userId' | 'purpose' | 'data'> & Pick<Partial<NewProof>, 'decision' | 'pendingId'>

export interface Attempts {
  /**
   * Counts the attempt, and commits that, before `verify` is asked; what is refused is not verified. `verify` answers
   * undefined for what is wrong; when it throws, the attempt was none. No transaction is open meanwhile.
   */
  attempt(attempt: Attempt, verify: () => Promise<Verified | undefined>): Promise<AttemptOutcome>
}

export interface AttemptDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  /** The publisher of the outbox. */
  events: { wake(): void }
  hmac: Hmac
  audit: TokenAudit
  captchas: CaptchaGate
}

/** In ms. */
const turnPause = 40
const turnTries = Math.ceil((turnSeconds * 1_000) / turnPause)

export const createAttempts = ({ database, events, hmac, audit, captchas }: AttemptDependencies): Attempts => {
  const { query } = database
  const failureKeys = lockoutKeys(hmac)

  /** Attempts of one interaction take turns: of a form that is sent twice, the second finds it finished. */
  const takeTurn = async (
    interactionId: string,
    keys: FailureKeys,
    policy: LockoutPolicy,
  ): Promise<Counted | undefined> => {
    for (let tries = 0; tries <= turnTries; tries++) {
      const counted = await countAttempt(query, interactionId, keys, policy)
      if (counted) return counted
      if (!(await isInteractionOpen(query, interactionId))) return undefined
      await delay(turnPause)
    }
    return undefined
  }

  const lock = async ({ interaction, account, policy, person, entered, request }: Attempt) => {
    const isRecorded = await database.transaction(async (trx) => {
      if (!(await lockAccount(trx, account, policy)) || !person) return false
      const { id, type, name, description } = interaction.client
      await recordEvent(trx, {
        type: 'Identifier.Lockout',
        entity: { kind: 'user', id: person.id },
        data: null,
        extras: {
          ...entered,
          interactionEvent: interaction.event,
          sessionId: interaction.id,
          userIp: request.ip,
          application: { id, type, name, description },
        },
        request,
      })
      return true
    })
    if (isRecorded) events.wake()
  }

  return {
    async attempt(attempt, verify) {
      const { interaction, visitor, request, kind, account, policy, person } = attempt
      const keys = { address: failureKeys.address(visitor.origin.ip), account }
      const counted = await takeTurn(interaction.id, keys, policy)
      if (!counted) return { outcome: 'over' }

      const note = (result: 'Success' | 'Error', error?: string) =>
        audit.record({
          key: `Interaction.${interaction.event}.Verification.${auditNames[kind]}.Submit`,
          result,
          applicationId: interaction.client.id,
          userId: person?.id,
          payload: { interactionId: interaction.id, ip: request.ip, userAgent: request.userAgent, error },
        })
      const refuse = async <const Refusal extends AttemptOutcome>(refusal: Refusal): Promise<Refusal> => {
        note('Error', refusal.outcome)
        await leaveTurn(query, interaction.id)
        return refusal
      }

      const { ofAddress, ofAccount, minutes } = counted
      if (ofAddress > addressPolicy.attempts) return refuse({ outcome: 'too_many_requests' })
      if (ofAccount === null || ofAccount > policy.attempts) return refuse({ outcome: 'locked', minutes })

      let verified: Verified | undefined
      try {
        verified = await verify()
      } catch (error) {
        await forgiveAttempt(query, interaction.id, keys, policy)
        throw error
      }
      const tellsWho = identifies({ kind, purpose: 'sign_in' })
      if (!verified) {
        if (tellsWho) await captchas.failed(attempt.entered.value)
        const isLast = ofAccount === policy.attempts
        if (isLast) await lock(attempt)
        return refuse({ outcome: 'invalid_credentials', ...(isLast && { isLast }) })
      }
      const proofId = await succeedAttempt(query, keys, { ...verified, interactionId: interaction.id, kind })
      if (proofId !== undefined) {
        note('Success')
        if (tellsWho && ofAccount > 1) await captchas.succeeded(attempt.entered.value)
        return { outcome: 'verified', proofId }
      }
      if (!(await isInteractionOpen(query, interaction.id))) return { outcome: 'over' }
      // Somebody has deleted the person meanwhile.
      return refuse({ outcome: 'invalid_credentials' })
    },
  }
}

/** As existing clients of the audit log know them. */
const auditNames: Readonly<Record<ProofKindName, string>> = {
  password: 'Password',
  email_code: 'VerificationCode',
  phone_code: 'VerificationCode',
  one_time_token: 'OneTimeToken',
  passkey: proofKinds.passkey.recordType,
  federated: proofKinds.federated.recordType,
  totp: proofKinds.totp.recordType,
  backup_code: proofKinds.backup_code.recordType,
}
