import { toSeconds } from '../../../platform/clock.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { AuditEntry } from '../../base/audit/log-store.ts'
import type { TokenAudit } from '../../base/audit/token-audit.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { CustomClaims } from '../../claims/claims.ts'
import { newTokenId } from '../../tokens/access-token.ts'
import { grantTypes } from '../../tokens/grant-types.ts'
import type { Audience } from '../requests/resource.ts'
import { secretOf } from './audited-secret.ts'
import { type Grant, grant, type TokenRequest } from './grant.ts'
import { enterOrganization } from './organization.ts'

/**
 * RFC 6749 §4.4: a machine-to-machine application gets a token for itself, with what its roles hold on the resource.
 */
export const clientCredentialsGrant = ({
  database,
  audit,
  claims,
}: {
  database: Pick<Database, 'query'>
  audit: TokenAudit
  claims: CustomClaims
}): Grant => {
  /** What the token is for, and what the application holds there of the scopes asked for. */
  const targetOf = async (request: TokenRequest): Promise<{ audience: Audience; held: readonly string[] }> => {
    const { client, clientScopes, organizationId, target } = request
    // RFC 9068 §3: never a token without an audience.
    if (organizationId === undefined) return { audience: await target({ required: true }), held: clientScopes }
    const [settled] = await Promise.allSettled([target({ required: false })])
    const application = { kind: 'application' as const, id: client.id }
    const { audience, granted } = (await enterOrganization(database.query, request, application, settled))!
    return { audience, held: [...clientScopes, ...granted] }
  }

  /** That a script refused a token belongs into the trail as well. */
  const audited = async <Result>(request: TokenRequest, asked: Promise<Result>): Promise<Result> => {
    try {
      return await asked
    } catch (error) {
      if (error instanceof OAuthError)
        audit.record(
          entryOf(request, 'Error', {
            error: { code: error.error, reason: error.reason, message: error.message },
          }),
        )
      throw error
    }
  }

  return grant({
    type: grantTypes.clientCredentials,
    allows: ({ type }) => type === 'MachineToMachine',
    read: () => undefined,
    async prepare(_, request) {
      const { client, scopes, organizationId, now } = request
      const { audience, held } = await targetOf(request)
      const { indicator, accessTokenTtl } = audience
      const scope = scopes.filter((name) => held.includes(name)).join(' ')
      const iat = toSeconds(now)
      const own = {
        jti: newTokenId(),
        sub: client.id,
        aud: indicator,
        clientId: client.id,
        scope,
        iat,
        exp: iat + accessTokenTtl,
        organizationId,
      }
      const asked = claims.of(request.claimsScripts, () => ({ kind: 'client-credentials', ...own }))
      return {
        token: { claims: asked ? { ...own, custom: await audited(request, asked) } : own },
        scope,
        expiresIn: accessTokenTtl,
      }
    },
    issued({ token, scope }, request) {
      audit.record(entryOf(request, 'Success', { scope, tokenId: 'claims' in token ? token.claims.jti : undefined }))
    },
  })
}

const entryOf = (
  { client, resource, organizationId, scopes, origin }: TokenRequest,
  result: AuditEntry['result'],
  particulars: Record<string, unknown>,
): AuditEntry => ({
  key: 'ExchangeTokenBy.ClientCredentials',
  result,
  applicationId: client.id,
  payload: {
    ...origin,
    params: {
      grant_type: grantTypes.clientCredentials,
      resource,
      organization_id: organizationId,
      scope: scopes.join(' '),
    },
    ...secretOf(client),
    ...particulars,
  },
})
