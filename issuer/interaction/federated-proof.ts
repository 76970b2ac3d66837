import type { Database, Query, Transaction } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { addressKey } from '../base/rate-limits/address-key.ts'
import { type Federation, FederationError, type OfferedConnector } from '../connectors/federation.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { checkEmail } from '../directory/users/registration-rules/email-blocklist.ts'
import { countMessage } from '../messages/limit-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import {
  type FederationRequest,
  isSameText,
  newState,
  openRequest,
  proofIdOf,
  sealRequest,
} from './federation-request.ts'
import { findAwaited, offerLink } from './federation-store.ts'
import { findLinking } from './find-linking.ts'
import type { FederationOutcome, InteractionEventName, InteractionState } from './interaction-state.ts'
import { beginEvent, findInteraction, type Interaction, keepDecision } from './interaction-store.ts'
import { type Linking, vouchedEmail } from './linking.ts'
import { beginProof, keepProof, takeTry } from './proof-store.ts'
import { type FederatedIdentity, type ProofData, type ProofPurpose, recordTypeOf } from './proofs.ts'
import { allows } from './settings.ts'
import type { Visitor } from './visitor.ts'

/** What a proof by a provider can be for. */
export type FederationPurpose = Extract<ProofPurpose, 'sign_in' | 'register' | 'bind'>

export type FederationBegun =
  | { outcome: 'begun'; url: string; proofId: string }
  /** `refused`: there is no such connector, or the settings do not let people come by it. */
  | { outcome: 'refused' | 'unavailable' | 'too_many_requests' | 'over' }

export type FederationAnswered =
  /** Whatever came of it: the page of the interaction shows it. */
  | { outcome: 'go_on'; interactionId: string }
  /** Nobody here asked for this answer, or somebody else did. */
  | { outcome: 'refused' | 'other_browser' }

export type FederationVerified =
  | { outcome: 'verified'; proofId: string; identity: FederatedIdentity; linking: Linking }
  /** The proof waits for no answer, or this is none of its own. */
  | { outcome: 'not_found' }
  | { outcome: 'failed'; reason: FederationError['reason'] }
  | { outcome: 'over' }

/** Proofs that a person's identity provider gives (§13). */
export interface FederatedProofs {
  /** The social connectors of the pages of an application. */
  offered(interaction: Pick<Interaction, 'client'>): Promise<OfferedConnector[]>
  /** The enterprise connector whose people sign in nowhere else; undefined where the settings leave it to them. */
  enterpriseOf(address: string): Promise<OfferedConnector | undefined>
  /** What `direct_sign_in` names. */
  direct(interaction: Pick<Interaction, 'client' | 'request'>): Promise<OfferedConnector | undefined>
  /** Where the browser goes to. What waits for another provider is void. */
  begin(interaction: Interaction, visitor: Visitor, asked: FederationAsked): Promise<FederationBegun>
  /** The answer of a provider, as the browser brings it to the callback. */
  answer(connectorId: string, visitor: Visitor, parameters: URLSearchParams): Promise<FederationAnswered>
  /** The same, as a page of one's own brings it. */
  verify(
    interaction: Interaction,
    visitor: Visitor,
    answer: { connectorId: string; proofId: string; parameters: URLSearchParams },
  ): Promise<FederationVerified>
}

export interface FederationAsked {
  connectorId: string
  purpose: FederationPurpose
  loginHint?: string | undefined
  /** Of a page of one's own, which gets the answer itself. */
  page?: { state: string; redirectUri: string } | undefined
}

/** How long a person may stay at the provider, in seconds. */
const awaitedSeconds = 600
/** Of one address, in so many seconds. */
const limit = { most: 100, seconds: 600 } as const

export const createFederatedProofs = ({
  database,
  federation,
  envelope,
  hmac,
  audit,
  settings,
  baseUrl,
}: {
  database: Pick<Database, 'query' | 'transaction'>
  federation: Federation
  envelope: Envelope
  hmac: Hmac
  audit: TokenAudit
  settings: () => SignInExperience
  /** Where browsers reach the issuer. */
  baseUrl: string
}): FederatedProofs => {
  const { query, transaction } = database

  /** Undefined for one that the settings do not let people come by. */
  const enabled = async (connectorId: string): Promise<OfferedConnector | undefined> => {
    const connector = await federation.get(connectorId)
    const { singleSignOnEnabled, socialSignInConnectorTargets } = settings()
    const isEnabled =
      connector?.kind === 'sso' ? singleSignOnEnabled : socialSignInConnectorTargets.includes(connector?.target ?? '')
    return isEnabled ? connector : undefined
  }

  const linkingFor = (trx: Transaction, identity: FederatedIdentity) => findLinking(trx, identity, settings())

  const note = (
    { id, event, client }: Pick<Interaction, 'id' | 'event' | 'client'>,
    { origin: { ip, userAgent } }: Visitor,
    connectorId: string,
    done: { identity?: FederatedIdentity; userId?: string; error?: string; description?: string },
  ) =>
    audit.record({
      key: `Interaction.${event}.Verification.${recordTypeOf({ kind: 'federated', data: { federated: done.identity } })}.Submit`,
      result: done.error === undefined ? 'Success' : 'Error',
      applicationId: client.id,
      userId: done.userId,
      payload: { interactionId: id, ip, userAgent, connectorId, error: done.error, errorDescription: done.description },
    })

  /** The one answer that counts. No transaction is open meanwhile. */
  const complete = async (
    interaction: Interaction,
    visitor: Visitor,
    { proofId, asked, parameters }: { proofId: string; asked: FederationRequest; parameters: URLSearchParams },
  ): Promise<{ identity: FederatedIdentity } | { reason: FederationError['reason'] | 'not_found' }> => {
    const { connectorId, kept, redirectUri } = asked
    const taken = await takeTry(query, {
      ...{ id: proofId, interactionId: interaction.id, kinds: ['federated'], most: 1 },
      purposes: ['sign_in', 'register', 'bind'],
    })
    if (!taken) return { reason: 'not_found' }
    try {
      const assertion = await federation.complete(connectorId, { kept, parameters, redirectUri })
      const connector = await enabled(connectorId)
      if (!connector) return { reason: 'connector_not_found' }
      const { kind, target, subject, issuer, name, avatar, phone, phoneVerified, raw } = assertion
      const { domains, syncProfile } = connector
      return {
        identity: {
          ...{ connectorId, kind, target, subject, issuer, name, avatar, raw, syncProfile },
          email: vouchedEmail(assertion, domains),
          phone: phoneVerified ? phone : undefined,
        },
      }
    } catch (error) {
      if (!(error instanceof FederationError)) throw error
      note(interaction, visitor, connectorId, { error: error.reason, description: error.message })
      return { reason: error.reason }
    }
  }

  /** What pages tell of it. */
  const tell = async (interactionId: string, told: NonNullable<InteractionState['federation']>) =>
    keepDecision(query, interactionId, { federation: told })

  const settleOnPages = async (
    trx: Query,
    interaction: Interaction,
    proofId: string,
    identity: FederatedIdentity,
  ): Promise<{ linking: Linking; refused?: FederationOutcome }> => {
    const { id } = interaction
    const turnTo = async (event: InteractionEventName) => {
      if (interaction.event !== event) await beginEvent(trx, { id, event, isAnew: false })
    }
    const linking = await linkingFor(trx, identity)
    if (linking.outcome === 'prove_first') {
      await turnTo('SignIn')
      await offerLink(trx, { interactionId: id, userId: linking.userId, data: { federated: identity } })
      return { linking, refused: 'prove_first' }
    }
    if (linking.outcome === 'new') {
      const refused = refusalOfNew(settings(), identity)
      if (refused) return { linking, refused }
      const purpose = interaction.event === 'Register' ? 'register' : 'sign_in'
      const data = dataOf(identity, linking)
      await keepProof(trx, { interactionId: id, userId: null, kind: 'federated', purpose, data, pendingId: proofId })
      await turnTo('Register')
      return { linking }
    }
    await turnTo('SignIn')
    const { userId } = linking
    const data = dataOf(identity, linking)
    await keepProof(trx, { interactionId: id, userId, kind: 'federated', purpose: 'sign_in', data })
    return { linking }
  }

  return {
    offered: ({ client }) => federation.offered({ clientId: client.id }),

    async enterpriseOf(address) {
      const domain = address
        .slice(address.lastIndexOf('@') + 1)
        .trim()
        .toLowerCase()
      return settings().singleSignOnEnabled && address.includes('@') && domain !== ''
        ? federation.byDomain(domain)
        : undefined
    },

    async direct({ client, request: { directSignIn } }) {
      if (directSignIn === undefined) return undefined
      const { method, target } = directSignIn
      if (method === 'social')
        return (await federation.offered({ clientId: client.id })).find((one) => one.target === target)
      const connector = await enabled(target)
      return connector?.kind === 'sso' ? connector : undefined
    },

    async begin(interaction, visitor, { connectorId, purpose, loginHint, page }) {
      const connector = await enabled(connectorId)
      if (!connector) return { outcome: 'refused' }
      const key = hmac('message-limits', 'federation', addressKey(visitor.origin.ip))
      if ((await countMessage(query, key, limit.most, limit.seconds)) > limit.most) {
        return { outcome: 'too_many_requests' }
      }
      const proofId = newId()
      const { state, redirectUri } = page ?? {
        state: newState(proofId),
        redirectUri: `${baseUrl}${callbackPath(connectorId)}`,
      }
      try {
        const { url, kept } = await federation.begin(connectorId, { redirectUri, state, loginHint })
        const sealed = sealRequest(envelope, proofId, { connectorId, redirectUri, state, kept })
        const begun = await beginProof(query, {
          ...{ id: proofId, interactionId: interaction.id, kind: 'federated', purpose, data: {} },
          userId: purpose === 'bind' ? (interaction.person?.id ?? null) : null,
          ...{ secret: sealed, seconds: awaitedSeconds },
        })
        if (begun === undefined) return { outcome: 'over' }
        await keepDecision(query, interaction.id, { federation: null })
        return { outcome: 'begun', url, proofId }
      } catch (error) {
        if (!(error instanceof FederationError)) throw error
        await tell(interaction.id, { outcome: 'unavailable', provider: connector.name })
        note(interaction, visitor, connectorId, { error: error.reason, description: error.message })
        return { outcome: 'unavailable' }
      }
    },

    async answer(connectorId, visitor, parameters) {
      const states = parameters.getAll('state')
      const state = states.length === 1 ? states[0] : undefined
      const proofId = proofIdOf(state)
      const awaited = proofId === undefined ? undefined : await findAwaited(query, proofId)
      if (proofId === undefined || state === undefined || !awaited) return { outcome: 'refused' }
      const { browser } = visitor
      if (browser === undefined || !tokenDigest('browser', browser).equals(awaited.browser)) {
        return { outcome: 'other_browser' }
      }
      const { interactionId, sealed } = awaited
      // It came before, or too late: the page says where the sign-in stands, and nothing comes of it.
      const goOn = { outcome: 'go_on', interactionId } as const
      if (sealed === null) return goOn
      const asked = openRequest(envelope, proofId, sealed)
      if (asked.connectorId !== connectorId || !isSameText(asked.state, state)) return { outcome: 'refused' }
      const interaction = await findInteraction(query, interactionId)
      if (!interaction?.isOpen) return goOn

      const provider = (await federation.get(connectorId))?.name ?? connectorId
      const completed = await complete(interaction, visitor, { proofId, asked, parameters })
      if ('reason' in completed) {
        if (completed.reason === 'not_found') return goOn
        const outcome = pageOutcomes[completed.reason] ?? 'failed'
        await tell(interactionId, { outcome, provider, text: textOf(parameters) })
        return goOn
      }
      const { identity } = completed
      const { linking, refused } = await transaction((trx) => settleOnPages(trx, interaction, proofId, identity))
      if (refused) await tell(interactionId, { outcome: refused, provider, email: identity.email })
      const userId = 'userId' in linking ? linking.userId : undefined
      note(interaction, visitor, connectorId, { identity, userId, error: refused })
      return goOn
    },

    async verify(interaction, visitor, { connectorId, proofId, parameters }) {
      const awaited = await findAwaited(query, proofId)
      if (!awaited?.sealed || awaited.interactionId !== interaction.id) return { outcome: 'not_found' }
      const asked = openRequest(envelope, proofId, awaited.sealed)
      const state = parameters.get('state')
      if (asked.connectorId !== connectorId || (state !== null && !isSameText(asked.state, state))) {
        return { outcome: 'not_found' }
      }
      if (state === null) parameters.set('state', asked.state)
      const completed = await complete(interaction, visitor, { proofId, asked, parameters })
      if ('reason' in completed) {
        return completed.reason === 'not_found'
          ? { outcome: 'not_found' }
          : { outcome: 'failed', reason: completed.reason }
      }
      const { identity } = completed
      const { purpose } = awaited
      const kept = await transaction(async (trx) => {
        const linking = await linkingFor(trx, identity)
        const about = { interactionId: interaction.id, kind: 'federated', pendingId: proofId } as const
        const isLater = purpose === 'sign_in' && linking.outcome === 'prove_first'
        const data = dataOf(identity, linking)
        const id = isLater
          ? await offerLink(trx, { interactionId: about.interactionId, proofId, userId: linking.userId, data })
          : await keepProof(trx, { ...about, purpose, data, userId: ownerOf(purpose, linking, interaction) })
        return id === undefined ? undefined : { linking, proofId: id }
      })
      if (!kept) return { outcome: 'over' }
      const userId = 'userId' in kept.linking ? kept.linking.userId : undefined
      note(interaction, visitor, connectorId, { identity, userId })
      return { outcome: 'verified', identity, ...kept }
    },
  }
}

export const callbackPath = (connectorId: string): string => `/callback/${connectorId}`

const ownerOf = (purpose: ProofPurpose, linking: Linking, { person }: Interaction): string | null => {
  if (purpose === 'bind') return person?.id ?? null
  return purpose === 'sign_in' && 'userId' in linking ? linking.userId : null
}

/** What is kept with the proof. An address is only somebody's who begins with it. */
const dataOf = (identity: FederatedIdentity, { outcome }: Linking): ProofData => ({
  federated: { ...identity, ...(outcome === 'by_address' && { isByAddress: true }) },
  ...(outcome === 'new' &&
    identity.email !== undefined && { identifier: { type: 'email', value: identity.email } as const }),
})

const refusalOfNew = (settings: SignInExperience, { email }: FederatedIdentity): FederationOutcome | undefined => {
  if (!allows(settings, 'Register')) return 'no_account'
  return email !== undefined && checkEmail(email, settings.emailBlocklistPolicy) ? 'email_refused' : undefined
}

const pageOutcomes: Partial<Record<FederationError['reason'], FederationOutcome>> = {
  denied: 'denied',
  unavailable: 'unavailable',
}

/** What a provider says of an error. Pages escape and cut it. */
const textOf = (parameters: URLSearchParams): string | undefined =>
  (parameters.get('error_description') ?? parameters.get('error'))?.slice(0, 500)
