import type { EventRequest } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { availableFactors, type Factors } from '../directory/users/factors/index.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import { secondFactorPolicy } from '../directory/users/lockout/lockout-policy.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import { endInteraction, type Interaction } from './interaction-store.ts'
import type { Notices } from './notices.ts'
import { findOwner } from './person-store.ts'
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

/**
 * Codes of authenticator apps, and backup codes. What was right is used up, whatever becomes of the sign-in; so the
 * owner is told of a backup code with its use, not with the sign-in.
 */
export const createSecondFactorProofs = ({
  database,
  attempts,
  factors,
  notices,
  hmac,
  now,
}: {
  database: Pick<Database, 'query' | 'transaction'>
  attempts: Attempts
  notices: Notices
  factors: Factors
  hmac: Hmac
  now: () => Date
}): SecondFactorProofs => {
  const { query } = database
  const keys = lockoutKeys(hmac)

  interface Typed {
    interaction: Interaction
    visitor: Visitor
    userId: string
    code: string
  }
  /** Answers the id of the factor. */
  const use: Readonly<Record<TypedFactor, (typed: Typed) => Promise<string | undefined>>> = {
    totp: ({ userId, code }) => factors.useTotp(query, { userId, code, now: now() }),
    backup_code: ({ interaction, visitor, userId, code }) =>
      database.transaction(async (trx) => {
        const owner = await findOwner(trx, userId)
        const factorId = owner && (await factors.useBackupCode(trx, { userId, code }))
        if (!owner || factorId === undefined) return undefined
        const { backupCodes: left = 0 } = (await availableFactors(trx, userId)) ?? {}
        await notices.notify(trx, interaction, visitor, owner, { type: 'BackupCodeUsed', left })
        return factorId
      }),
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
        async () => {
          const factorId = await use[kind]({ interaction, visitor, userId: person.id, code })
          return factorId === undefined ? undefined : { userId: person.id, purpose: 'mfa', data: { factorId } }
        },
      )
      if (attempt.outcome === 'locked') await endInteraction(query, interaction.id)
      return attempt
    },
  }
}
