import type { Database } from '../../platform/database/database.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import type { Cookies } from '../base/cookies.ts'
import { OAuthError } from '../base/errors/problems.ts'
import { addressKey } from '../base/rate-limits/address-key.ts'
import { authorizationCode } from '../tokens/authorizations/authorization-store.ts'
import { useConsent } from '../tokens/consents/consent-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { FederatedProofs } from './federated-proof.ts'
import { grantCode } from './grant-code.ts'
import { interactionPath } from './interaction-path.ts'
import type { InteractionEventName } from './interaction-state.ts'
import { findInteraction, insertInteraction } from './interaction-store.ts'
import type { InteractionOperations } from './operations.ts'
import { allows, recoveryFactors, type SignInSettings } from './settings.ts'
import { keepSessionFresh } from './sign-in-session.ts'
import type { StandingOf } from './standing.ts'
import { type RefusalWithoutPages, refusalWithoutPages, type Step, type StepName } from './step.ts'
import type { Visitor } from './visitor.ts'

export type Begun =
  /** Without a code where none is wanted. */
  | { kind: 'authorized'; code: string | undefined; setCookies: string[] }
  /** `location` is relative, `/sign-in/<id>`, where the pages are ours. */
  | { kind: 'page'; location: string; setCookies: string[] }
  | ({ kind: 'refused'; setCookies: string[] } & RefusalWithoutPages)

export interface Interactions {
  /** Begins a checked authorization request. Throws 429 when too many of the address wait for a person. */
  begin(request: AuthorizationRequest, client: AuthorizationClient, visitor: Visitor): Promise<Begun>
}

export interface InteractionDependencies {
  database: Pick<Database, 'query'>
  cookies: Cookies
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  settings: () => SignInSettings
  standingOf: StandingOf
  noteBlocked: InteractionOperations['noteBlocked']
  federated: Pick<FederatedProofs, 'direct' | 'begin'>
  /** Where an application's pages of signing in are, if they are not ours. */
  signInPagesOf(clientId: string): Promise<string | null>
}

/** What an interaction knows before anybody has said anything. */
const untouched = {
  event: 'SignIn',
  proofs: [],
  staged: {},
  person: undefined,
  state: {},
} as const

/** Of first pages that existing SDKs ask for; all others sign in. */
const eventByScreen: ReadonlyMap<string, InteractionEventName> = new Map([
  ['register', 'Register'],
  ['identifier:register', 'Register'],
  ['reset_password', 'ForgotPassword'],
])

/** What a request begins with, as far as the settings let people. */
const firstEvent = (
  { firstScreen = '', prompts }: AuthorizationRequest,
  settings: SignInSettings,
): InteractionEventName => {
  if (!allows(settings, 'SignIn')) return 'Register'
  const wanted = prompts.includes('create') ? 'Register' : eventByScreen.get(firstScreen)
  if (wanted === 'ForgotPassword') return recoveryFactors(settings).length > 0 ? wanted : 'SignIn'
  return wanted !== undefined && allows(settings, wanted) ? wanted : 'SignIn'
}

/** Steps that are ours to ask, whoever has the pages of signing in. */
const ownSteps: ReadonlySet<StepName> = new Set(['select_account', 'consent', 'denied', 'blocked', 'done'])

/** Steps that a provider may answer. */
const federating: ReadonlySet<StepName> = new Set(['sign_in', 'register'])

/** Pages that are not ours are told what they are about, in the words of existing ones. */
const foreignPage = (
  page: string,
  id: string,
  { clientId, firstScreen, directSignIn }: AuthorizationRequest,
): string => {
  const url = new URL(page)
  url.searchParams.set('interaction', id)
  url.searchParams.set('app_id', clientId)
  if (firstScreen !== undefined) url.searchParams.set('first_screen', firstScreen)
  if (directSignIn) url.searchParams.set('direct_sign_in', `${directSignIn.method}:${directSignIn.target}`)
  return url.href
}

/**
 * Whoever has a session and lacks nothing goes back at once, and leaves no row behind. Otherwise an interaction waits
 * for a person at its own address, and belongs to one browser.
 */
export const createInteractions = ({
  database: { query },
  cookies,
  interactionsPerAddress,
  settings,
  standingOf,
  noteBlocked,
  federated,
  signInPagesOf,
}: InteractionDependencies): Interactions => {
  const beginPages = async (
    request: AuthorizationRequest,
    client: AuthorizationClient,
    visitor: Visitor,
    due: StepName,
  ): Promise<Pick<Extract<Begun, { kind: 'page' }>, 'location' | 'setCookies'>> => {
    const id = newId()
    const fresh = randomToken()
    const { browser, origin } = visitor
    const { ip, userAgent } = origin
    const made = await insertInteraction(query, {
      id,
      request,
      event: firstEvent(request, settings()),
      browser: {
        known: browser === undefined ? undefined : tokenDigest('browser', browser),
        fresh: tokenDigest('browser', fresh),
      },
      address: addressKey(ip),
      limit: interactionsPerAddress,
      audit: {
        key: 'Interaction.Create',
        result: 'Success',
        applicationId: client.id,
        payload: { interactionId: id, ip, userAgent, prompts: request.prompts },
      },
    })
    if (!made) {
      throw new OAuthError('temporarily_unavailable', 'Too many sign-ins are under way from this address.', {
        status: 429,
        headers: { 'Retry-After': '60' },
      })
    }
    const page = ownSteps.has(due) ? null : await signInPagesOf(client.id)
    const provider =
      page === null && request.directSignIn && federating.has(due) ? await providerPage(id, visitor) : undefined
    const location = page === null ? (provider ?? interactionPath(id)) : foreignPage(page, id, request)
    return { location, setCookies: made.isNewBrowser ? [cookies.set('browser', fresh)] : [] }
  }

  /** Where `direct_sign_in` leads. Undefined: nowhere, or the page says why not. */
  const providerPage = async (id: string, visitor: Visitor): Promise<string | undefined> => {
    const interaction = await findInteraction(query, id)
    const connector = interaction && (await federated.direct(interaction))
    if (!interaction || !connector) return undefined
    const purpose = interaction.event === 'Register' ? 'register' : 'sign_in'
    const { loginHint } = interaction.request
    const begun = await federated.begin(interaction, visitor, { connectorId: connector.id, purpose, loginHint })
    return begun.outcome === 'begun' ? begun.url : undefined
  }

  const begin: Interactions['begin'] = async (request, client, visitor) => {
    const asked = { ...untouched, request, client }
    const standing = await standingOf(query, asked, visitor)
    const { session, consent } = standing.situation
    const { step } = standing.step
    if (step === 'done' && session) {
      const fresh = () => keepSessionFresh(query, cookies, session, visitor)
      if (request.responseType === 'none') return { kind: 'authorized', code: undefined, setCookies: await fresh() }
      const code = randomToken()
      const isGranted = await grantCode(query, {
        code: authorizationCode(code),
        ...{ request, client, consent, session },
      })
      // It ended between the two.
      if (!isGranted) return begin(request, client, { ...visitor, session: undefined })
      if (consent) await useConsent(query, session.userId, client.id)
      return { kind: 'authorized', code, setCookies: await fresh() }
    }
    const setCookies = session ? await keepSessionFresh(query, cookies, session, visitor) : []
    // A page in which a hundred frames ask for one leaves nothing behind that would keep its visitors' neighbours out.
    if (request.prompts.includes('none') || visitor.isEmbedded) {
      if (step === 'blocked' && session) noteBlocked(asked, visitor, standing)
      return { kind: 'refused', ...refusalOf(standing.step), setCookies }
    }
    const page = await beginPages(request, client, visitor, step)
    return { kind: 'page', location: page.location, setCookies: [...setCookies, ...page.setCookies] }
  }

  return { begin }
}

/** What the rules say of somebody is not for the client. */
const refusalOf = ({ step, options }: Step): RefusalWithoutPages => {
  const refusal = refusalWithoutPages[step === 'done' ? 'sign_in' : step]
  if (step !== 'denied') return refusal
  const { error = refusal.error, description = refusal.description } = options
  return { error, description }
}
