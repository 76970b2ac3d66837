import { OAuthError } from '../../base/errors/problems.ts'
import type { AskingClient, AuthorizationFacts } from './authorization-facts-store.ts'
import type { AuthorizationParameters } from './authorization-parameters.ts'

/** An authorization request as it came, with what is registered of it. */
export interface Asked {
  parameters: AuthorizationParameters
  client: AskingClient
  facts: Omit<AuthorizationFacts, 'client'>
  /** The client itself sent it ahead (RFC 9126). */
  isPushed: boolean
}

export const invalid = (description: string) => new OAuthError('invalid_request', description)
