import type { Query } from '../../platform/database/database.ts'
import { OAuthError } from '../base/errors/problems.ts'
import { isIndicator } from '../base/indicator.ts'
import { nearestIndicator, type TokenRequestFacts } from './clients/token-request-store.ts'
import { malformedResource, unknownResource } from './requests/resource.ts'
import { requireDefined } from './requests/scope.ts'

/** What a token request asks for. */
interface Asked {
  /** `resource` */
  requested: string | undefined
  scopes: readonly string[]
  organizationId: string | undefined
}

/** `TokenRequest.target`: told when the grant asks, so that each grant decides which of several faults comes first. */
export const targetOf =
  (query: Query, { requested, scopes, organizationId }: Asked, facts: TokenRequestFacts) =>
  async ({ required }: { required: boolean }) => {
    const { resource, definedScopes } = facts
    if (!resource) {
      if (requested !== undefined) throw await wrongResource(query, requested)
      // The organization itself, whose scopes the grant looks up.
      if (organizationId !== undefined) return undefined
      if (required) throw new OAuthError('invalid_target', 'A resource is needed: there is no default resource.')
    }
    requireDefined(scopes, definedScopes, resource?.indicator)
    return resource
  }

const wrongResource = async (query: Query, requested: string): Promise<OAuthError> => {
  if (!isIndicator(requested)) return malformedResource()
  return unknownResource(await nearestIndicator(query, requested))
}
