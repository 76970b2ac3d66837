import type { EventRequest } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import { consumeOneTimeToken, type TokenRefusal } from '../directory/one-time-tokens/use.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import type { AccountKey } from './account-key.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import type { Identifier } from './identifier.ts'
import type { Interaction } from './interaction-store.ts'
import type { Visitor } from './visitor.ts'

export interface OneTimeTokenProofs {
  /** One attempt with a token that whoever runs the issuer has sent to an address. It is used up by being right. */
  prove(
    interaction: Interaction,
    visitor: Visitor,
    input: { identifier: Identifier; token: string },
    request: EventRequest,
  ): Promise<AttemptOutcome & { refusal?: TokenRefusal | undefined }>
}

export const createOneTimeTokenProofs = ({
  database,
  attempts,
  accountKey,
  lockout,
}: {
  database: Pick<Database, 'transaction'>
  attempts: Attempts
  accountKey: AccountKey
  lockout: () => LockoutPolicy
}): OneTimeTokenProofs => ({
  async prove(interaction, visitor, { identifier, token }, request) {
    // It would be used up for nothing.
    if (interaction.event === 'ForgotPassword') return { outcome: 'invalid_credentials' }
    const { person, account } = await accountKey(identifier, visitor)
    const entered = { type: identifier.type, value: identifier.canonical }
    const isNew = interaction.event === 'Register'
    let refusal: TokenRefusal | undefined
    const attempt = await attempts.attempt(
      { interaction, visitor, request, kind: 'one_time_token', account, policy: lockout(), person, entered },
      async () => {
        const presented = { email: identifier.canonical, token, event: interaction.event }
        const used = await database.transaction((trx) => consumeOneTimeToken(trx, presented))
        refusal = used.refusal
        if (!used.row) return undefined
        return {
          userId: isNew ? null : (person?.id ?? null),
          purpose: isNew ? 'register' : 'sign_in',
          data: { identifier: entered },
        }
      },
    )
    return { ...attempt, refusal }
  },
})
