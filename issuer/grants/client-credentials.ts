import { toSeconds } from '../../platform/clock.ts'
import { newTokenId } from '../tokens/access-token.ts'
import type { TokenAudit } from '../tokens/token-audit.ts'
import { type Grant, grant } from './grant.ts'

/** RFC 6749 §4.4: a machine-to-machine application gets a token for itself, with what its roles hold on the resource. */
export const clientCredentialsGrant = ({ audit }: { audit: TokenAudit }): Grant =>
  grant({
    type: 'client_credentials',
    allows: ({ type }) => type === 'MachineToMachine',
    read: () => undefined,
    async prepare(_, { client, scopes, clientScopes, target, now }) {
      // RFC 9068 §3: never a token without an audience.
      const { indicator, accessTokenTtl } = await target({ required: true })
      const scope = scopes.filter((name) => clientScopes.includes(name)).join(' ')
      const iat = toSeconds(now)
      return {
        token: {
          claims: {
            jti: newTokenId(),
            sub: client.id,
            aud: indicator,
            clientId: client.id,
            scope,
            iat,
            exp: iat + accessTokenTtl,
          },
        },
        scope,
        expiresIn: accessTokenTtl,
      }
    },
    issued({ token, scope }, { client, requestedResource, scopes, origin }) {
      audit.record({
        key: 'ExchangeTokenBy.ClientCredentials',
        result: 'Success',
        applicationId: client.id,
        payload: {
          ...origin,
          params: { grant_type: 'client_credentials', resource: requestedResource, scope: scopes.join(' ') },
          scope,
          tokenId: 'claims' in token ? token.claims.jti : undefined,
        },
      })
    },
  })
