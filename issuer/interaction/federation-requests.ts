import type { Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { addressKey } from '../base/rate-limits/address-key.ts'
import {
  type FederatedAssertion,
  type Federation,
  FederationError,
  type OfferedConnector,
  type OpenedConnector,
} from '../connectors/federation.ts'
import { domainOf } from '../directory/organizations/jit/jit.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { countMessage } from '../messages/limit-store.ts'
import { type FederationRequest, newState, openRequest, proofIdOf, sealRequest } from './federation-request.ts'
import { type AwaitedProof, findAwaited, takeAwaited } from './federation-store.ts'
import { findProvidersOf } from './identity-store.ts'
import { vouchedEmail } from './linking.ts'
import type { FederatedIdentity } from './proofs.ts'

/** How long a person may stay at the provider, in seconds. */
export const awaitedSeconds = 600
/** Of one address, in so many seconds. */
const limit = { most: 100, seconds: 600 } as const

export const callbackPath = (connectorId: string): string => `/callback/${connectorId}`

export type FederationSent =
  | { outcome: 'begun'; url: string; proofId: string }
  /** `refused`: there is no such connector, or the settings do not let people come by it. */
  | { outcome: 'refused' | 'too_many_requests' | 'over' }
  | { outcome: 'unavailable'; connector: OfferedConnector; error: FederationError }

export type FederationCompleted =
  | { identity: FederatedIdentity; connector: OfferedConnector }
  /** `used`: another answer came before. */
  | { reason: FederationError['reason'] | 'used'; description?: string; connector?: OfferedConnector | undefined }

export interface FederationDependencies {
  query: Query
  federation: Federation
  envelope: Envelope
  hmac: Hmac
  settings: () => SignInExperience
  /** Where browsers reach the issuer. */
  baseUrl: string
}

/** Requests to providers and their answers, whatever they are for. */
export const createFederationRequests = (dependencies: FederationDependencies) => {
  const { query, federation, envelope, hmac, settings, baseUrl } = dependencies

  /** Undefined for one that the settings do not let people come by, or that cannot be used. */
  const open = async (connectorId: string): Promise<OpenedConnector | undefined> => {
    const opened = await federation.open(connectorId).catch((error) => {
      if (error instanceof FederationError) return undefined
      throw error
    })
    const { singleSignOnEnabled, socialSignInConnectorTargets } = settings()
    const { kind, target = '' } = opened?.connector ?? {}
    return (kind === 'sso' ? singleSignOnEnabled : socialSignInConnectorTargets.includes(target)) ? opened : undefined
  }

  const enabled = async (connectorId: string): Promise<OfferedConnector | undefined> =>
    (await open(connectorId))?.connector

  /** Of the people of an enterprise its own provider alone speaks, and no social one. */
  const emailOf = async (assertion: FederatedAssertion, { kind, domains }: OfferedConnector) => {
    const email = vouchedEmail(assertion, domains)
    if (email === undefined || kind === 'sso') return email
    return (await federation.byDomain(domainOf(email))) ? undefined : email
  }

  return {
    enabled,

    /** Those that somebody has an identity by, as far as the settings let people come by them. */
    async ofPerson(userId: string, { clientId }: { clientId: string }): Promise<OfferedConnector[]> {
      const known = await findProvidersOf(query, userId)
      const knows = (kind: OfferedConnector['kind'], target: string) =>
        known.some((one) => one.kind === kind && one.target === target)
      const social = await federation.offered({ clientId })
      const enterprises = await Promise.all(
        known.filter(({ kind }) => kind === 'sso').map(({ target }) => enabled(target)),
      )
      return [
        ...social.filter(({ target }) => knows('social', target)),
        ...enterprises.filter((connector) => connector !== undefined),
      ]
    },

    /** `keep` stores the proof that waits; false: there is nothing any more that it could be for. */
    async send(
      asked: {
        connectorId: string
        /** Of the browser. */
        ip: string
        loginHint?: string | undefined
        asksAgain?: boolean | undefined
        /** Of a page of one's own, which gets the answer itself. */
        page?: { state: string; redirectUri: string } | undefined
      },
      keep: (proof: { id: string; sealed: Buffer }) => Promise<boolean>,
    ): Promise<FederationSent> {
      const { connectorId, ip, loginHint, asksAgain, page } = asked
      const key = hmac('message-limits', 'federation', addressKey(ip))
      const [opened, count] = await Promise.all([
        open(connectorId),
        countMessage(query, key, limit.most, limit.seconds),
      ])
      if (!opened) return { outcome: 'refused' }
      if (count > limit.most) return { outcome: 'too_many_requests' }
      const id = newId()
      const redirectUri = page?.redirectUri ?? `${baseUrl}${callbackPath(connectorId)}`
      const state = page?.state ?? newState(id)
      try {
        const { url, kept } = await opened.begin({ redirectUri, state, loginHint, asksAgain })
        const sealed = sealRequest(envelope, id, { connectorId, redirectUri, state, kept })
        return (await keep({ id, sealed })) ? { outcome: 'begun', url, proofId: id } : { outcome: 'over' }
      } catch (error) {
        if (!(error instanceof FederationError)) throw error
        return { outcome: 'unavailable', connector: opened.connector, error }
      }
    },

    awaited: (proofId: string): Promise<AwaitedProof | undefined> => findAwaited(query, proofId),

    /** The proof that the `state` of an answer names. */
    async awaitedBy(parameters: URLSearchParams): Promise<{ state: string; awaited: AwaitedProof } | undefined> {
      const [state, ...more] = parameters.getAll('state')
      const id = more.length === 0 ? proofIdOf(state) : undefined
      const awaited = id === undefined ? undefined : await findAwaited(query, id)
      return awaited && state !== undefined ? { state, awaited } : undefined
    },

    /** What was asked; undefined when it was answered, or its time is over. */
    requestOf: ({ id, sealed }: AwaitedProof): FederationRequest | undefined =>
      sealed === null ? undefined : openRequest(envelope, id, sealed),

    /** The one answer that counts. No transaction is open meanwhile. */
    async complete(
      proofId: string,
      { connectorId, kept, redirectUri }: FederationRequest,
      parameters: URLSearchParams,
    ): Promise<FederationCompleted> {
      const [isTaken, opened] = await Promise.all([takeAwaited(query, proofId), open(connectorId)])
      if (!isTaken) return { reason: 'used' }
      if (!opened) return { reason: 'connector_not_found' }
      const { connector } = opened
      try {
        const assertion = await opened.complete({ kept, parameters, redirectUri })
        const { kind, target, origin, subject, issuer, name, avatar, phone, phoneVerified, raw } = assertion
        const identity = {
          ...{ connectorId, kind, target, origin, subject, issuer, name, avatar, raw },
          syncProfile: connector.syncProfile,
          email: await emailOf(assertion, connector),
          phone: phoneVerified ? phone : undefined,
        }
        return { identity, connector }
      } catch (error) {
        if (!(error instanceof FederationError)) throw error
        return { reason: error.reason, description: error.message, connector }
      }
    },
  }
}

export type FederationRequests = ReturnType<typeof createFederationRequests>

/** What a provider says of an error. Pages escape and cut it. */
export const providerText = (parameters: URLSearchParams): string | undefined =>
  (parameters.get('error_description') ?? parameters.get('error'))?.slice(0, 500)
