import type { EventRequest } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { Factors } from '../directory/users/factors/index.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import { secondFactorPolicy } from './failure-store.ts'
import { endInteraction, type Interaction } from './interaction-store.ts'
import type { Visitor } from './visitor.ts'

export type TypedFactor = 'totp' | 'backup_code'

export interface SecondFactorProofs {
  /** One attempt with what the person types, after it is proven who they are. Locked: the interaction ends. */
  prove(
    interaction: Interaction,
    visitor: Visitor,
    input: { kind: TypedFactor; code: string },
    request: EventRequest,
  ): Promise<AttemptOutcome>
}

/** Codes of authenticator apps, and backup codes. What was right is used up, whatever becomes of the sign-in. */
export const createSecondFactorProofs = ({
  query,
  attempts,
  factors,
  hmac,
  now,
}: {
  query: Query
  attempts: Attempts
  factors: Factors
  hmac: Hmac
  now: () => Date
}): SecondFactorProofs => {
  const keys = lockoutKeys(hmac)
  const holds: Readonly<Record<TypedFactor, (userId: string, code: string) => Promise<boolean>>> = {
    totp: (userId, code) => factors.useTotp(query, { userId, code, now: now() }),
    backup_code: (userId, code) => factors.useBackupCode(query, { userId, code }),
  }

  return {
    async prove(interaction, visitor, { kind, code }, request) {
      const { person } = interaction
      if (!person) return { outcome: 'invalid_credentials' }
      const entered = { type: 'userId', value: person.id } as const
      const attempt = await attempts.attempt(
        {
          ...{ interaction, visitor, request, kind, person, entered },
          account: keys.secondFactor(person.id),
          policy: secondFactorPolicy,
        },
        async () =>
          (await holds[kind](person.id, code)) ? { userId: person.id, purpose: 'mfa', data: {} } : undefined,
      )
      if (attempt.outcome === 'locked') await endInteraction(query, interaction.id)
      return attempt
    },
  }
}
