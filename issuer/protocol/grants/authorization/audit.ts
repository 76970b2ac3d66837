import type { AuditEntry } from '../../../base/audit/log-store.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import type { EndReason } from '../../../tokens/sessions/session.ts'
import { isPublic } from '../../clients/client.ts'
import { secretOf } from '../audited-secret.ts'
import type { TokenRequest } from '../grant.ts'
import type { AuthorizationFacts } from './authorization-facts-store.ts'

const keys = {
  [grantTypes.authorizationCode]: 'ExchangeTokenBy.AuthorizationCode',
  [grantTypes.deviceCode]: 'ExchangeTokenBy.DeviceCode',
  [grantTypes.refreshToken]: 'ExchangeTokenBy.RefreshToken',
} as const

/** A request as far as it came: what is known of it when it is refused. */
export interface Attempt {
  grantType: keyof typeof keys
  request: TokenRequest
  facts?: AuthorizationFacts | undefined
  /** Why it ended the authorization that the code or token is of, if it did. */
  ended?: EndReason
}

const entryOf = (
  { grantType, request, facts, ended }: Attempt,
  result: AuditEntry['result'],
  particulars: Record<string, unknown>,
): AuditEntry => ({
  key: keys[grantType],
  result,
  applicationId: request.client.id,
  userId: facts?.userId,
  payload: {
    ...request.origin,
    params: {
      grant_type: grantType,
      resource: request.resource,
      organization_id: request.organizationId,
      scope: request.scopes.join(' '),
    },
    sessionId: facts?.authorizationId,
    ended,
    ...secretOf(request.client),
    ...particulars,
  },
})

export const issuedEntry = (attempt: Attempt, issued: { scope: string; tokenId: string }): AuditEntry =>
  entryOf(attempt, 'Success', issued)

/**
 * Who tried and was refused belongs into the trail as well; but not what anybody can send without knowing anything, a
 * public client's id and nonsense: such rows would only bury the others.
 */
export const audited = async <Result>(audit: TokenAudit, attempt: Attempt, step: Promise<Result>): Promise<Result> => {
  try {
    return await step
  } catch (error) {
    if (error instanceof OAuthError && (attempt.facts || !isPublic(attempt.request.client))) {
      const { error: code, reason, message } = error
      audit.record(entryOf(attempt, 'Error', { error: { code, reason, message } }))
    }
    throw error
  }
}
