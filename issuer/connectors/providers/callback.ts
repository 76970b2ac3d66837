import { type AuthorizationServer, type Client, validateAuthResponse } from 'oauth4webapi'
import { inStage } from './faults.ts'
import { FederationError } from './federation-error.ts'

/** The answer at the callback, held against its request: state, issuer (RFC 9207), error, one code. */
export const readCallback = (
  server: AuthorizationServer,
  client: Client,
  parameters: URLSearchParams,
  state: string,
): Promise<URLSearchParams> =>
  inStage('callback', () => {
    const read = validateAuthResponse(server, client, parameters, state)
    if (parameters.getAll('code').length !== 1)
      throw new FederationError('invalid_response', 'The answer at the callback has no code, or several.')
    return read
  })
