import { clientCredentialsGrant } from './grants/client-credentials.ts'
import type { Grant } from './grants/grant.ts'
import { tokenExchangeGrant } from './grants/token-exchange/token-exchange.ts'

export type Grants = ReadonlyMap<string, Grant>

type Dependencies = Parameters<typeof clientCredentialsGrant>[0] & Parameters<typeof tokenExchangeGrant>[0]

/** The table of grants: a new one is a file and a line. */
export const createGrants = (dependencies: Dependencies): Grants => {
  const enabled = [clientCredentialsGrant(dependencies), tokenExchangeGrant(dependencies)]
  return new Map(enabled.map((grant) => [grant.type, grant]))
}
