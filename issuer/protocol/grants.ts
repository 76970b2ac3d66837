import { authorizationCodeGrant } from './grants/authorization-code/authorization-code.ts'
import { clientCredentialsGrant } from './grants/client-credentials.ts'
import { deviceCodeGrant } from './grants/device-code/device-code.ts'
import type { Grant } from './grants/grant.ts'
import { refreshTokenGrant } from './grants/refresh-token/refresh-token.ts'
import { tokenExchangeGrant } from './grants/token-exchange/token-exchange.ts'

export type Grants = ReadonlyMap<string, Grant>

const grantsInOrder = [
  authorizationCodeGrant,
  refreshTokenGrant,
  clientCredentialsGrant,
  tokenExchangeGrant,
  deviceCodeGrant,
] as const

type Dependencies = Parameters<typeof authorizationCodeGrant>[0] &
  Parameters<typeof refreshTokenGrant>[0] &
  Parameters<typeof clientCredentialsGrant>[0] &
  Parameters<typeof tokenExchangeGrant>[0] &
  Parameters<typeof deviceCodeGrant>[0]

/** The table of grants: a new one is a file and a line. */
export const createGrants = (dependencies: Dependencies): Grants =>
  new Map(grantsInOrder.map((make) => make(dependencies)).map((grant) => [grant.type, grant]))
