import { OAuthError } from '../../base/errors/problems.ts'
import { isIndicator } from '../../base/indicator.ts'
import type { AuthorizationRequest } from '../../interaction/authorization-request.ts'
import { malformedResource, organizationsResource, unknownResource } from '../requests/resource.ts'
import { isReserved, parseScope } from '../requests/scope.ts'
import type { Asked } from './asked.ts'
import { type AuthorizationParameters, onlyValueOf, valuesOf } from './authorization-parameters.ts'

/** Which resources and scopes tokens are asked for. */

const maxResources = 8

/** What a `resource` names: some SDKs send several in one, with commas. */
const indicatorsOf = (value: string): readonly string[] => value.split(',').filter((part) => part !== '')

/** Each once. A value that is registered as it is stands for itself, commas or not. */
const resourcesAsked = ({ parameters, facts }: Asked): readonly string[] => {
  const isRegistered = (value: string) => facts.resources.some(({ indicator }) => indicator === value)
  const asked = valuesOf(parameters, 'resource').flatMap((value) =>
    isRegistered(value) || indicatorsOf(value).length === 0 ? [value] : indicatorsOf(value),
  )
  return [...new Set(asked)]
}

/** Whatever a request may mean by its `resource` parameters, to be looked up. */
export const likelyResources = (parameters: AuthorizationParameters): readonly string[] => {
  const values = valuesOf(parameters, 'resource').slice(0, maxResources + 1)
  return [...new Set(values.flatMap((value) => [value, ...indicatorsOf(value).slice(0, maxResources + 1)]))]
}

export const registeredResources =
  (nearestIndicator: (indicator: string) => Promise<string | undefined>) =>
  async (asked: Asked): Promise<Partial<AuthorizationRequest>> => {
    const indicators = resourcesAsked(asked)
    if (indicators.length > maxResources)
      throw new OAuthError('invalid_target', `At most ${maxResources} resources can be asked for.`)
    const unknown = indicators.find(
      (asking) =>
        asking !== organizationsResource && !asked.facts.resources.some(({ indicator }) => indicator === asking),
    )
    if (unknown !== undefined)
      throw isIndicator(unknown) ? unknownResource(await nearestIndicator(unknown)) : malformedResource()
    return { resources: indicators.filter((indicator) => indicator !== organizationsResource) }
  }

/** The names that a request asks for; none when they cannot be read, which `knownScopes` refuses. */
export const likelyScopes = (parameters: AuthorizationParameters): readonly string[] => {
  try {
    return parseScope(onlyValueOf(parameters, 'scope'))
  } catch {
    return []
  }
}

/**
 * With a resource, or a default one, a name that is defined nowhere is an error. Otherwise it is ignored (OpenID
 * Connect Core §3.1.2.1); and so is what a third-party client may not ask people for.
 */
export const knownScopes = (asked: Asked) => {
  const { parameters, facts } = asked
  const names = parseScope(onlyValueOf(parameters, 'scope'))
  const indicators = resourcesAsked(asked)
  const inForce = facts.resources.filter(({ indicator, isDefault }) =>
    indicators.length === 0 ? isDefault : indicators.includes(indicator),
  )
  const scopes = names.filter(
    (name) =>
      isReserved(name) || facts.organizationScopes.includes(name) || inForce.some((one) => one.scopes.includes(name)),
  )
  if (scopes.length < names.length && (indicators.length > 0 || inForce.length > 0))
    throw new OAuthError('invalid_scope', 'A scope is defined on none of the resources; names must match exactly.')
  const { limits } = facts
  const ofResources = inForce
    .map(({ indicator, scopes: defined }) => {
      const mayAskFor = limits ? (limits.resources[indicator] ?? []) : defined
      return [indicator, names.filter((name) => defined.includes(name) && mayAskFor.includes(name))] as const
    })
    .filter(([, asked]) => asked.length > 0)
  const askedFor = limits
    ? scopes.filter((name) => limits.names.includes(name) || ofResources.some(([, asked]) => asked.includes(name)))
    : scopes
  return {
    scopes: askedFor,
    resourceScopes: Object.fromEntries(ofResources),
    wantsOfflineAccess: askedFor.includes('offline_access'),
  }
}
