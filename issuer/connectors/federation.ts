import type { Database, Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { assertionOf, type FederatedAssertion } from './providers/assertion.ts'
import { FederationError } from './providers/federation-error.ts'
import { createIdentityProviderStore, type IdentityProvider } from './providers/identity-provider-store.ts'
import { toOffered } from './providers/offered.ts'
import { originOf } from './providers/origin-store.ts'
import { createProviderRequests, type ProviderRequestOptions, type ProviderRequests } from './providers/outbound.ts'
import type { BeginFederation } from './providers/profile.ts'
import { createProtocols, isConfigured } from './providers/protocols.ts'

export type { FederationFault } from './providers/federation-error.ts'
export { type FederatedAssertion, FederationError }

/** What pages show of a connector. */
export interface OfferedConnector {
  id: string
  kind: 'social' | 'sso'
  /** How identities name the provider: `google`. Of an enterprise connector its id. */
  target: string
  /** In English, or as the operator named it. */
  name: string
  /** `https:` only. */
  logo?: string
  darkLogo?: string
  /** Of an enterprise connector, in lower case. */
  domains: readonly string[]
  /** The profile is taken over at every sign-in, not only at the first. */
  syncProfile: boolean
}

export interface CompleteFederation {
  /** As `begin` answered it. */
  kept: unknown
  /** Of the callback: query, or the form of a provider that posts. */
  parameters: URLSearchParams
  /** That of `begin`. */
  redirectUri: string
}

/** A connector as it was configured when it was opened. Both throw `FederationError`. */
export interface OpenedConnector {
  connector: OfferedConnector
  /** Where the browser goes, and what `complete` needs again: JSON, secret, good for one answer. */
  begin(request: BeginFederation): Promise<{ url: string; kept: Record<string, unknown> }>
  complete(answer: CompleteFederation): Promise<FederatedAssertion>
}

/** People whom identity providers know. What it says of connectors is as old as settings are (`Settings`). */
export interface Federation {
  /** Throws `FederationError`: there is no such connector, or it is not configured yet. */
  open(connectorId: string): Promise<OpenedConnector>
  /**
   * Whether a connector leads where it led when it told this, and does so until the transaction ends. Ask before the
   * identity becomes somebody's.
   */
  isStillFrom(trx: Query, told: { connectorId: string; origin?: string | undefined }): Promise<boolean>
  /** The social connectors of the sign-in page of an application, in the order of the settings. */
  offered(page: { clientId?: string | undefined }): Promise<readonly OfferedConnector[]>
  /**
   * The enterprise connector that owns a domain (the part of an address behind the `@`). Undefined too while single
   * sign-on is off (`singleSignOnEnabled`).
   */
  byDomain(domain: string): Promise<OfferedConnector | undefined>
  /** Why its configuration cannot work now; reads what the provider publishes. Throws `FederationError`. */
  check(provider: IdentityProvider): Promise<void>
  close(): Promise<void>
}

export interface FederationDependencies {
  database: Pick<Database, 'query'>
  envelope: Envelope
  experience: () => SignInExperience
  /** Where connectors are kept in memory. Absent: nowhere. */
  memory?: Settings['memory'] | undefined
  /** How providers are reached. */
  outbound: ProviderRequestOptions
  /** Connectors that know whoever they are told. Tests only. */
  mocks: boolean
  now: () => Date
}

export const createFederation = (dependencies: FederationDependencies): Federation => {
  const { database, envelope, experience, memory = noMemory, mocks, now } = dependencies
  const store = createIdentityProviderStore(envelope)
  const requests: ProviderRequests = createProviderRequests(dependencies.outbound)
  const protocolOf = createProtocols({ requests, mocks, now })

  const usable = (row: IdentityProvider | undefined) =>
    row !== undefined && isConfigured(row, { mocks }) ? toOffered(row) : undefined

  const opened = memory<OpenedConnector>()
  const ofTargets = memory<readonly OfferedConnector[]>()
  const ofDomains = memory<OfferedConnector | undefined>()

  const open = async (connectorId: string): Promise<OpenedConnector> => {
    const row = await store.find(database.query, connectorId)
    if (row === undefined) throw new FederationError('connector_not_found', 'There is no such connector.')
    const protocol = protocolOf(row)
    const told = { ...row, target: row.target ?? row.id, origin: originOf(row) }
    return {
      connector: toOffered(row),
      begin: (request) => protocol.begin(request),
      async complete(answer) {
        const { claims, ...says } = await protocol.complete(answer)
        return assertionOf(told, claims, says)
      },
    }
  }

  return {
    open: (connectorId) => opened(connectorId, () => open(connectorId)),
    async isStillFrom(trx, { connectorId, origin }) {
      const row = await store.share(trx, connectorId)
      // What an issuer of the version before has kept names none.
      return row !== undefined && (origin === undefined || originOf(row) === origin)
    },
    async offered() {
      const targets = experience().socialSignInConnectorTargets
      if (targets.length === 0) return []
      return ofTargets(JSON.stringify(targets), async () => {
        const rows = await store.ofTargets(database.query, targets)
        return rows.map(usable).filter((connector) => connector !== undefined)
      })
    },
    async byDomain(domain) {
      if (!experience().singleSignOnEnabled) return undefined
      const named = domain.toLowerCase()
      return ofDomains(named, async () => usable(await store.ofDomain(database.query, named)))
    },
    check: (provider) => protocolOf(provider).check(),
    close: () => requests.close(),
  }
}

const noMemory: Settings['memory'] = () => (_key, find) => find()
