import type { Consent } from '../tokens/consents/consent.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'

type Asked = Pick<
  AuthorizationRequest,
  'prompts' | 'scopes' | 'resources' | 'resourceScopes' | 'organizationId' | 'device'
>

interface ConsentQuestion {
  request: Asked & Pick<AuthorizationRequest, 'wantsOfflineAccess'>
  client: Pick<AuthorizationClient, 'type' | 'isThirdParty'>
  /** One that counts. */
  consent: Consent | undefined
}

const offlineAccess = 'offline_access'
const organizationsScope = 'urn:logto:scope:organizations'

/**
 * OpenID Connect Core §11: `offline_access` needs `prompt=consent`, or other conditions: that the application is ours,
 * or that the person has allowed it before. Otherwise it is left out, and the answer's `scope` tells.
 */
export const grantsOfflineAccess = ({ request, client, consent }: ConsentQuestion): boolean =>
  request.wantsOfflineAccess &&
  (!client.isThirdParty || request.prompts.includes('consent') || consent?.scopes.includes(offlineAccess) === true)

/** The scopes that are granted if everything is allowed, in the order of the request. */
export const scopesToGrant = (question: ConsentQuestion): readonly string[] =>
  grantsOfflineAccess(question)
    ? question.request.scopes
    : question.request.scopes.filter((scope) => scope !== offlineAccess)

/** Those that no resource defines. */
const scopesOfNoResource = (question: ConsentQuestion): readonly string[] => {
  const ofResources = new Set(Object.values(question.request.resourceScopes).flat())
  return scopesToGrant(question).filter((scope) => !ofResources.has(scope))
}

/** What the person is asked to allow, and what is kept when it is. */
export const askedFor = (question: ConsentQuestion): Omit<Consent, 'organizations'> => ({
  scopes: scopesOfNoResource(question),
  resources: Object.fromEntries(
    [...new Set([...question.request.resources, ...Object.keys(question.request.resourceScopes)])].map((indicator) => [
      indicator,
      question.request.resourceScopes[indicator] ?? [],
    ]),
  ),
})

/** Whether the person chooses organizations too. */
export const asksForOrganizations = ({ scopes, organizationId }: Pick<Asked, 'scopes' | 'organizationId'>): boolean =>
  scopes.includes(organizationsScope) || organizationId !== undefined

const includesAll = (allowed: readonly string[] | undefined, asked: readonly string[]): boolean =>
  allowed !== undefined && asked.every((name) => allowed.includes(name))

export const isConsentNeeded = (question: ConsentQuestion): boolean => {
  const { request, client, consent } = question
  // RFC 8628 §5.4: whoever was sent here by somebody else's code finds out on this page.
  if (request.device) return true
  if (!client.isThirdParty) return false
  // RFC 8252 §8.6: any program on a device can say that it is this one.
  if (client.type === 'Native' || request.prompts.includes('consent') || !consent) return true
  const { scopes, resources } = askedFor(question)
  const covers =
    includesAll(consent.scopes, scopes) &&
    Object.entries(resources).every(([indicator, names]) => includesAll(consent.resources[indicator], names)) &&
    (request.organizationId === undefined || consent.organizations.includes(request.organizationId))
  return !covers
}

/** What was allowed before stays allowed; the organizations are those chosen now, where they were asked for. */
export const extendedConsent = (question: ConsentQuestion, organizationIds: readonly string[]): Consent => {
  const { scopes, resources } = askedFor(question)
  const { consent, request } = question
  const union = (one: readonly string[] = [], other: readonly string[] = []) => [...new Set([...one, ...other])]
  const indicators = union(Object.keys(consent?.resources ?? {}), Object.keys(resources))
  return {
    scopes: union(consent?.scopes, scopes),
    resources: Object.fromEntries(
      indicators.map((indicator) => [indicator, union(consent?.resources[indicator], resources[indicator])]),
    ),
    organizations: asksForOrganizations(request) ? organizationIds : (consent?.organizations ?? []),
  }
}
