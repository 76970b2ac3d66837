import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { OAuthError, type OAuthErrorCode } from '../../base/errors/problems.ts'
import { isIndicator } from '../../base/indicator.ts'
import { matchesRedirectUri } from '../../base/redirect-uri.ts'
import {
  type AuthorizationRequest,
  authorizationRequest,
  prompts,
  responseModes,
} from '../../interaction/authorization-request.ts'
import type { PageProblem } from '../../pages/index.ts'
import type { VerifyIdTokenHint } from '../../tokens/id-token-hint.ts'
import { acrs } from '../../tokens/sessions/session.ts'
import { isPublic } from '../clients/client.ts'
import { malformedResource, organizationsResource, unknownResource } from '../requests/resource.ts'
import { isReserved, parseScope } from '../requests/scope.ts'
import type { AskingClient, AuthorizationFacts } from './authorization-facts-store.ts'
import { type AuthorizationParameters, onlyValueOf, valuesOf } from './authorization-parameters.ts'

/** An authorization request as it came, with what is registered of it. */
export interface Asked {
  parameters: AuthorizationParameters
  client: AskingClient
  facts: Omit<AuthorizationFacts, 'client'>
  /** The client itself sent it ahead (RFC 9126). */
  isPushed: boolean
}

interface Check {
  /** What it looks at, for the log. */
  name: string
  /** Who is told of a refusal: the person by a page, or the client by a redirect. */
  refusal: PageProblem | 'redirect'
  /** Throws an `OAuthError`, or answers members of the checked request. */
  check(asked: Asked): Partial<AuthorizationRequest> | Promise<Partial<AuthorizationRequest>>
}

export interface CheckDependencies {
  verifyIdTokenHint: VerifyIdTokenHint
  /** The registered indicator that somebody may have meant. */
  nearestIndicator(indicator: string): Promise<string | undefined>
}

/**
 * What an authorization request must be (RFC 6749 §4.1.1, OpenID Connect Core §3.1.2.2), in this order. Nobody is sent
 * to an address before it is proven to be the client's (RFC 6749 §4.1.2.1, RFC 9700 §4.11).
 */
const checksOf = ({ verifyIdTokenHint, nearestIndicator }: CheckDependencies): readonly Check[] => [
  { name: 'client_id', refusal: 'invalid_request', check: oneClientId },
  { name: 'the client', refusal: 'invalid_client', check: registeredClient },
  { name: 'type of the application', refusal: 'unauthorized_client', check: clientOfPeople },
  { name: 'device flow', refusal: 'unauthorized_client', check: clientWithBrowser },
  { name: 'sent ahead', refusal: 'invalid_request_uri', check: sentAheadWhereRequired },
  { name: 'redirect_uri', refusal: 'invalid_redirect_uri', check: registeredRedirectUri },

  { name: 'repeated parameters', refusal: 'redirect', check: eachOnce },
  { name: 'request', refusal: 'redirect', check: withoutParameter('request', 'request_not_supported') },
  { name: 'request_uri', refusal: 'redirect', check: withoutParameter('request_uri', 'request_uri_not_supported') },
  { name: 'registration', refusal: 'redirect', check: withoutParameter('registration', 'registration_not_supported') },
  { name: 'response_type', refusal: 'redirect', check: codeAsked },
  { name: 'response_mode', refusal: 'redirect', check: knownResponseMode },
  { name: 'state, nonce', refusal: 'redirect', check: echoedValues },
  { name: 'code_challenge', refusal: 'redirect', check: proofKey },
  { name: 'dpop_jkt', refusal: 'redirect', check: keyThumbprint },
  { name: 'resource', refusal: 'redirect', check: registeredResources(nearestIndicator) },
  { name: 'scope', refusal: 'redirect', check: knownScopes },
  { name: 'prompt', refusal: 'redirect', check: knownPrompts },
  { name: 'max_age', refusal: 'redirect', check: wholeMaxAge },
  { name: 'login_hint', refusal: 'redirect', check: shortLoginHint },
  { name: 'id_token_hint', refusal: 'redirect', check: ownIdTokenHint(verifyIdTokenHint) },
  { name: 'wishes', refusal: 'redirect', check: wishes },
]

/** What a request of a device must be (RFC 8628 §3.1): it has no redirect URI, and gets its answer by asking for it. */
const checksOfDevices = ({ nearestIndicator }: Pick<CheckDependencies, 'nearestIndicator'>): readonly Check[] =>
  (
    [
      ['the client', registeredClient],
      ['device flow', clientOfDevices],
      ['resource', registeredResources(nearestIndicator)],
      ['scope', knownScopes],
      ['wishes', wishes],
      ['what it has not', () => ({ redirectUri: '', responseMode: 'query', prompts: ['login', 'consent'] })],
    ] as const
  ).map(([name, check]) => ({ name, refusal: 'invalid_request', check }) as Check)

/** How the client is answered. */
export type Recipient = Pick<AuthorizationRequest, 'redirectUri' | 'responseMode' | 'state'>

export type Checked =
  | { request: AuthorizationRequest }
  | { check: string; error: OAuthError; recipient: Recipient }
  | { check: string; error: OAuthError; problem: PageProblem }

export type CheckRequest = (asked: Asked) => Promise<Checked>

/** Faults of ours, such as a database that is away, are thrown on. */
export const createCheckRequest = (dependencies: CheckDependencies): CheckRequest => checking(checksOf(dependencies))

export const createCheckDeviceRequest = (dependencies: Pick<CheckDependencies, 'nearestIndicator'>): CheckRequest =>
  checking(checksOfDevices(dependencies))

const checking =
  (checks: readonly Check[]): CheckRequest =>
  async (asked) => {
    const request: Partial<AuthorizationRequest> = {}
    for (const { name, refusal, check } of checks) {
      try {
        Object.assign(request, await check(asked))
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error
        const refused = { check: name, error }
        return refusal === 'redirect' ? { ...refused, recipient: recipientOf(asked) } : { ...refused, problem: refusal }
      }
    }
    return { request: authorizationRequest.parse(request) }
  }

/** In the mode that was asked for, where there is such a mode. */
const recipientOf = ({ parameters }: Asked): Recipient => {
  const mode = onlyValueOf(parameters, 'response_mode')
  const state = onlyValueOf(parameters, 'state')
  return {
    redirectUri: onlyValueOf(parameters, 'redirect_uri')!,
    responseMode: responseModes.find((name) => name === mode) ?? 'query',
    ...(state !== undefined && isEchoable(state, maxStateBytes) ? { state } : {}),
  }
}

const invalid = (description: string) => new OAuthError('invalid_request', description)

const words = (text: string | undefined): string[] =>
  [...new Set((text ?? '').split(' '))].filter((word) => word !== '')

/** Stands for a client that is not registered. */
export const unknownClient: AskingClient = {
  id: '',
  name: '',
  description: null,
  type: 'SAML',
  isThirdParty: true,
  logoUri: undefined,
  alwaysIssueRefreshToken: false,
  refreshTokenTtlInDays: 0,
  redirectUris: [],
  requirePkce: true,
  requirePar: true,
  isDeviceFlow: false,
}

const oneClientId = ({ parameters }: Asked) => {
  if (onlyValueOf(parameters, 'client_id') === undefined) throw invalid('Exactly one client_id is needed.')
  return {}
}

const registeredClient = ({ client }: Asked) => {
  if (client === unknownClient) throw new OAuthError('invalid_client', 'There is no such client.')
  return { clientId: client.id }
}

/** A machine has nobody who could sign in. */
const typesOfPeople: readonly string[] = ['Native', 'SPA', 'Traditional', 'Protected']

const clientOfPeople = ({ client }: Asked) => {
  if (!typesOfPeople.includes(client.type))
    throw new OAuthError('unauthorized_client', 'People do not sign in to an application of this type.')
  return {}
}

const clientWithBrowser = ({ client }: Asked) => {
  if (client.isDeviceFlow)
    throw new OAuthError('unauthorized_client', 'People sign in to this application on another device.')
  return {}
}

const clientOfDevices = ({ client }: Asked) => {
  if (!client.isDeviceFlow)
    throw new OAuthError('unauthorized_client', 'This client may not use the device flow; see isDeviceFlow.')
  return {}
}

const sentAheadWhereRequired = ({ client, isPushed }: Asked) => {
  if (client.requirePar && !isPushed)
    throw new OAuthError('invalid_request_uri', 'This client must send its authorization requests ahead.')
  return {}
}

const registeredRedirectUri = ({ parameters, client }: Asked) => {
  const redirectUri = onlyValueOf(parameters, 'redirect_uri')
  if (redirectUri === undefined) throw invalid('Exactly one redirect_uri is needed.')
  if (!matchesRedirectUri(client.redirectUris, redirectUri, { native: client.type === 'Native' }))
    throw invalid('The redirect_uri is not registered for this client; it must match exactly.')
  return { redirectUri }
}

// RFC 6749 §3.1. RFC 8707 §2 lets `resource` repeat.
const eachOnce = ({ parameters }: Asked) => {
  for (const [name, values] of parameters)
    if (name !== 'resource' && values.length > 1) throw invalid('A parameter is repeated.')
  return {}
}

const withoutParameter =
  (name: string, error: OAuthErrorCode) =>
  ({ parameters }: Asked) => {
    if (onlyValueOf(parameters, name) !== undefined)
      throw new OAuthError(error, `The parameter ${name} is not supported here.`)
    return {}
  }

const codeAsked = ({ parameters }: Asked) => {
  const responseType = onlyValueOf(parameters, 'response_type')
  if (responseType === undefined) throw invalid('Missing required parameter: response_type.')
  if (responseType !== 'code')
    throw new OAuthError('unsupported_response_type', 'The only response_type that is supported is code.')
  return {}
}

const knownResponseMode = ({ parameters }: Asked) => {
  const asked = onlyValueOf(parameters, 'response_mode') ?? 'query'
  const responseMode = responseModes.find((mode) => mode === asked)
  if (responseMode === undefined) throw invalid(`The response_mode must be one of ${responseModes.join(', ')}.`)
  return { responseMode }
}

/** In bytes. */
const maxStateBytes = 4_096
const maxNonceBytes = 1_024

// A form would send line breaks back in another spelling.
const controlCharacters = /[\p{Cc}]/u

const isEchoable = (text: string, maxBytes: number) =>
  Buffer.byteLength(text) <= maxBytes && !controlCharacters.test(text)

const echoedValues = ({ parameters }: Asked) => {
  const state = onlyValueOf(parameters, 'state')
  const nonce = onlyValueOf(parameters, 'nonce')
  if (state !== undefined && !isEchoable(state, maxStateBytes))
    throw invalid(`The state must be at most ${maxStateBytes} bytes, without control characters.`)
  if (nonce !== undefined && !isEchoable(nonce, maxNonceBytes))
    throw invalid(`The nonce must be at most ${maxNonceBytes} bytes, without control characters.`)
  return { state, nonce }
}

/** RFC 7636 §4.2: of SHA-256 it is always this long. */
const challengeForm = /^[\w-]{43}$/

const proofKey = ({ parameters, client }: Asked) => {
  const codeChallenge = onlyValueOf(parameters, 'code_challenge')
  const method = onlyValueOf(parameters, 'code_challenge_method')
  if (codeChallenge === undefined) {
    if (method !== undefined) throw invalid('There is a code_challenge_method without a code_challenge.')
    // RFC 9700 §2.1.1
    if (client.requirePkce || isPublic(client)) throw invalid('Missing required parameter: code_challenge (PKCE).')
    return {}
  }
  if (method !== 'S256') throw invalid('The code_challenge_method must be S256.')
  if (!challengeForm.test(codeChallenge)) throw invalid('The code_challenge must be 43 characters of base64url.')
  return { codeChallenge }
}

/** RFC 9449 §10: a thumbprint by SHA-256 (RFC 7638), so always this long. */
const keyThumbprint = ({ parameters }: Asked) => {
  const dpopJkt = onlyValueOf(parameters, 'dpop_jkt')
  if (dpopJkt === undefined) return {}
  if (!challengeForm.test(dpopJkt)) throw invalid('The dpop_jkt must be 43 characters of base64url.')
  return { dpopJkt }
}

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

const registeredResources =
  (nearestIndicator: CheckDependencies['nearestIndicator']) =>
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
const knownScopes = (asked: Asked) => {
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

const knownPrompts = ({ parameters }: Asked) => {
  const asked = words(onlyValueOf(parameters, 'prompt'))
  const known = prompts.filter((prompt) => asked.includes(prompt))
  if (known.length < asked.length) throw invalid(`Each prompt must be one of ${prompts.join(', ')}.`)
  if (known.includes('none') && known.length > 1) throw invalid('The prompt none stands alone.')
  return { prompts: known }
}

const wholeMaxAge = ({ parameters }: Asked) => {
  const maxAge = onlyValueOf(parameters, 'max_age')
  if (maxAge === undefined) return {}
  if (!/^\d{1,10}$/.test(maxAge)) throw invalid('The max_age must be a number of seconds, 0 or more.')
  return { maxAge: Number(maxAge) }
}

const maxLoginHint = 256

const shortLoginHint = ({ parameters }: Asked) => {
  const loginHint = onlyValueOf(parameters, 'login_hint')
  if (loginHint !== undefined && loginHint.length > maxLoginHint)
    throw invalid(`The login_hint must be at most ${maxLoginHint} characters.`)
  return { loginHint }
}

const ownIdTokenHint =
  (verify: VerifyIdTokenHint) =>
  async ({ parameters, client }: Asked): Promise<Partial<AuthorizationRequest>> => {
    const token = onlyValueOf(parameters, 'id_token_hint')
    if (token === undefined) return {}
    const hint = await verify(token).catch((cause: unknown) => {
      if (!(cause instanceof JwtError)) throw cause
      throw new OAuthError('invalid_request', 'The id_token_hint is no ID token of this issuer.', { cause })
    })
    if (hint.clientId !== client.id) throw invalid('The id_token_hint is of another client.')
    return { expectedUserId: hint.userId }
  }

/** The first pages that existing SDKs ask for. */
const firstScreens = [
  ...['sign_in', 'register', 'reset_password', 'single_sign_on', 'signIn'],
  ...['identifier:sign_in', 'identifier:register'],
]
const legacyScreens: Readonly<Record<string, string>> = { signUp: 'register', signIn: 'sign_in' }
const localeForm = /^[A-Za-z\d]{1,8}(-[A-Za-z\d]{1,8}){0,4}$/
const maxLocales = 10

/** What is not understood is ignored. `display`, `claims`, `claims_locales` and unknown parameters always are. */
const wishes = ({ parameters }: Asked): Partial<AuthorizationRequest> => {
  const one = (name: string) => onlyValueOf(parameters, name)
  const screen = one('first_screen')
  const mode = one('interaction_mode') ?? ''
  const organizationId = one('organization_id')
  const firstScreen = firstScreens.find((name) => name === screen)
  const [, method, target] = /^(social|sso):([\w.-]{1,128})$/.exec(one('direct_sign_in') ?? '') ?? []
  return {
    firstScreen: firstScreen ?? (Object.hasOwn(legacyScreens, mode) ? legacyScreens[mode] : undefined),
    directSignIn: method && target ? { method: method === 'sso' ? 'sso' : 'social', target } : undefined,
    organizationId: organizationId !== undefined && /^[\w-]{1,21}$/.test(organizationId) ? organizationId : undefined,
    uiLocales: words(one('ui_locales'))
      .filter((locale) => localeForm.test(locale))
      .slice(0, maxLocales),
    acrValues: words(one('acr_values')).filter((value) => (acrs as readonly string[]).includes(value)),
  }
}
