import type { IncomingMessage } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import { randomToken } from '../../../platform/ids.ts'
import type { Logger } from '../../../platform/logger.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import type { Limits } from '../../base/rate-limits/rate-limits.ts'
import {
  deviceCodeTtl,
  firstPollInterval,
  insertDeviceCode,
  type NewDeviceCode,
} from '../../tokens/device-codes/device-code-store.ts'
import { newUserCode, userCodeKey } from '../../tokens/device-codes/user-code.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import { type Endpoint, sendError, sendJson } from '../answers.ts'
import { findAuthorizationFacts } from '../authorization/authorization-facts-store.ts'
import { readAuthorizationParameters } from '../authorization/authorization-parameters.ts'
import type { CheckRequest } from '../authorization/checks.ts'
import { eachOnce } from '../authorization/each-once.ts'
import { likelyResources, likelyScopes } from '../authorization/target-checks.ts'
import type { AuthenticateClient } from '../clients/authenticate-client.ts'
import { findTokenRequestFacts } from '../clients/token-request-store.ts'
import { refuseParametersInUrl } from '../requests/parameters.ts'

export interface DeviceAuthorizationDependencies {
  query: Query
  hmac: Hmac
  authenticateClient: AuthenticateClient
  /** Of requests of devices. */
  checkRequest: CheckRequest
  limits: Pick<Limits, 'storedRequestFrom'>
  addressOf(request: IncomingMessage): string
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
}

/** Of 20^8 codes hardly ever one is taken. */
const userCodeTries = 5

/**
 * `POST /oidc/device/auth` (RFC 8628 §3.1, §3.2): a device without a browser asks for a sign-in, and gets a code that
 * its person enters at `/device` in a browser elsewhere.
 */
export const createDeviceAuthorizationEndpoint = (dependencies: DeviceAuthorizationDependencies): Endpoint => {
  const { query, hmac, authenticateClient, checkRequest, limits, addressOf, logger } = dependencies
  const verificationUri = `${dependencies.baseUrl}/device`

  /** The user code. */
  const store = async (code: Omit<NewDeviceCode, 'userCode'>): Promise<string> => {
    for (let tries = 0; tries < userCodeTries; tries++) {
      const userCode = newUserCode()
      if (await insertDeviceCode(query, { ...code, userCode: userCodeKey(hmac, userCode) })) return userCode
    }
    throw new Error(`${userCodeTries} user codes in a row were taken`)
  }

  const authorize = async (request: IncomingMessage) => {
    refuseParametersInUrl(request.url ?? '')
    const sent = await readAuthorizationParameters(request)
    const single = eachOnce(sent)
    const found = { resources: likelyResources(sent), scopes: likelyScopes(sent) }
    let ahead: ReturnType<typeof findAuthorizationFacts> | undefined
    const { client } = await authenticateClient(request, single, (clientId) => {
      ahead = findAuthorizationFacts(query, { clientId, ...found })
      ahead.catch(() => {})
      return findTokenRequestFacts(query, { clientId, resource: undefined, useDefaultResource: false, scopes: [] })
    })
    const address = addressOf(request)
    await limits.storedRequestFrom?.(address)
    const { client: asking, ...facts } = await ahead!
    // Deleted in between.
    if (!asking) throw new OAuthError('invalid_client', 'Client authentication failed.')
    const checked = await checkRequest({ parameters: sent, client: asking, facts, isPushed: false })
    if ('error' in checked) throw checked.error
    const deviceCode = randomToken()
    const userCode = await store({
      digest: tokenDigest('device-code', deviceCode),
      clientId: client.id,
      request: JSON.stringify(checked.request),
      address,
    })
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: verificationUri,
      verification_uri_complete: `${verificationUri}?user_code=${userCode}`,
      expires_in: deviceCodeTtl,
      interval: firstPollInterval,
    }
  }

  return async (request, response, requestId) => {
    try {
      sendJson(response, 200, await authorize(request))
    } catch (cause) {
      const { error } = sendError(response, cause, logger, requestId)
      logger.debug({ requestId, error }, 'request of a device refused')
    }
  }
}
