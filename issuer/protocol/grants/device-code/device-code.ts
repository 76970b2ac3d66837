import type { Database } from '../../../../platform/database/database.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { type Poll, pollDeviceCode } from '../../../tokens/device-codes/device-code-store.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Parameters } from '../../requests/parameters.ts'
import { type Attempt, audited } from '../authorization/audit.ts'
import { endReplayed, type PreparedCode, prepareCode, redeemPreparedCode } from '../authorization-code/code-issue.ts'
import { findCodeFacts } from '../authorization-code/code-store.ts'
import { type Grant, grant } from '../grant.ts'
import type { Redeemer } from '../redeeming-store.ts'

export interface DeviceCodeDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  claims: CustomClaims
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of what is refused; the row of one that succeeds is written with it. */
  audit: TokenAudit
}

interface DeviceCodeRequest {
  digest: Buffer
  organizationId: string | undefined
  /** When the request arrived, in ms of `performance.now()`. */
  arrivedAt: number
}

const readRequest = (parameters: Parameters): DeviceCodeRequest => {
  const code = parameters.get('device_code')
  if (code === undefined) throw new OAuthError('invalid_request', 'Missing required parameter: device_code.')
  return {
    digest: tokenDigest('device-code', code),
    organizationId: parameters.get('organization_id'),
    arrivedAt: performance.now(),
  }
}

const unusable = () =>
  new OAuthError('invalid_grant', 'The device code is unknown or used, or was not issued to this client.')
const expired = () => new OAuthError('expired_token', 'The device code has expired: ask for a new one.')

/** RFC 8628 §3.5: undefined when the person has allowed it. */
const refusalOf = ({ isAllowed, isExpired, isTooSoon }: Poll): OAuthError | undefined => {
  if (isAllowed === true) return undefined
  if (isAllowed === false) return new OAuthError('access_denied', 'The user refused.')
  if (isExpired) return expired()
  return isTooSoon
    ? new OAuthError('slow_down', 'The device polls too often: wait 5 seconds longer from now on.')
    : new OAuthError('authorization_pending', 'The user has not decided yet.')
}

/** RFC 8628 §3.4: a device asks whether its person has allowed it, until there are tokens. */
export const deviceCodeGrant = ({ database, claims, events, audit }: DeviceCodeDependencies): Grant => {
  const prepare = async (input: DeviceCodeRequest, attempt: Attempt): Promise<PreparedCode> => {
    const { request } = attempt
    const { digest, organizationId } = input
    const polled = await pollDeviceCode(database.query, digest, request.client.id)
    if (!polled) throw unusable()
    const refusal = refusalOf(polled)
    if (refusal) throw refusal
    const facts = await findCodeFacts(database.query, { digest, resource: request.resource, organizationId })
    if (facts?.clientId !== request.client.id) throw unusable()
    attempt.facts = facts
    // RFC 9449 §10
    if (facts.jkt !== null && facts.jkt !== request.jkt) throw unusable()
    if (facts.redeemedAgo !== null) {
      await endReplayed({ database, events }, attempt, facts, input)
      throw unusable()
    }
    if (facts.codeOver) throw expired()
    return prepareCode({ database, claims }, { ...attempt, facts }, { digest, nonce: null })
  }

  const redeem = async (redeemer: Redeemer, prepared: PreparedCode) => {
    if (!(await redeemPreparedCode(redeemer, prepared))) throw unusable()
    return { refreshToken: prepared.refreshToken }
  }

  return grant<DeviceCodeRequest, PreparedCode>({
    type: grantTypes.deviceCode,
    allows: ({ isDeviceFlow }) => isDeviceFlow,
    read: readRequest,
    prepare(input, request) {
      const attempt: Attempt = { grantType: grantTypes.deviceCode, request }
      return audited(audit, attempt, prepare(input, attempt))
    },
    redeem: (redeemer, prepared) => audited(audit, prepared.attempt, redeem(redeemer, prepared)),
  })
}
