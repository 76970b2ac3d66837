import type { CodePurpose } from '../../interaction/code-proof.ts'
import type { Identifier } from '../../interaction/identifier.ts'
import type { FactorError } from '../../pages/index.ts'
import type { StepAnswer } from './step.ts'

export type SendingError = Extract<FactorError, 'limited' | 'no_connector'> | 'address_invalid'

/** Sends a code. Undefined when it was sent, or the interaction is over, which the next page tells. */
export const sendCode = async (
  { operations, interaction, visitor, locale, request }: StepAnswer<never>,
  purpose: CodePurpose,
  identifier: Identifier | { type: 'email' | 'phone' },
): Promise<SendingError | undefined> => {
  const asked = { purpose, identifier, locale, tellsOwner: true }
  const sent = await operations.codes.send(interaction, visitor, asked, request)
  if (sent.outcome === 'invalid_recipient') return 'address_invalid'
  if (sent.outcome === 'limited' || sent.outcome === 'no_connector') return sent.outcome
  if (sent.outcome === 'sent') await sent.afterCommit()
  return undefined
}

/** The kind of address that a code goes to. */
export const addressTypes = { email_code: 'email', phone_code: 'phone' } as const
