import { randomBytes } from 'node:crypto'
import {
  createFederation,
  type FederatedAssertion,
  type Federation,
  type OpenedConnector,
} from '../../issuer/connectors/federation.ts'
import {
  createIdentityProviderStore,
  type NewIdentityProvider,
} from '../../issuer/connectors/providers/identity-provider-store.ts'
import type { ProviderRequestOptions } from '../../issuer/connectors/providers/outbound.ts'
import { signInExperience } from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import type { IdentityProvider } from './identity-provider.ts'

export interface TestFederation extends Federation {
  /** A connector as row. Default: social, by OpenID Connect. Answers its id. */
  add(row: Partial<NewIdentityProvider> & { config: Record<string, unknown> }): Promise<string>
  /** One that leads to this provider. */
  connect(provider: IdentityProvider, row?: Partial<NewIdentityProvider>): Promise<string>
  /** All of it: request, browser, answer. */
  signIn(connectorId: string, provider: IdentityProvider): Promise<FederatedAssertion>
  /** Those of the connector as it is when they are called. */
  begin(connectorId: string, request: Parameters<OpenedConnector['begin']>[0]): ReturnType<OpenedConnector['begin']>
  complete(connectorId: string, answer: Parameters<OpenedConnector['complete']>[0]): Promise<FederatedAssertion>
  test: TestDatabase
}

export const loopback = ['127.0.0.0/8']
export const redirectUriOf = (connectorId: string) => `https://id.example.com/callback/${connectorId}`

/** Federation on a database of its own, towards providers on this machine. `close()` it. */
export const startFederation = async (
  options: { mocks?: boolean; now?: () => Date; experience?: object } & Partial<ProviderRequestOptions> = {},
): Promise<TestFederation> => {
  const { mocks = false, now = () => new Date(), experience = {}, ...outbound } = options
  const test = await createTestDatabase()
  const envelope = createEnvelope({ current: randomBytes(32) })
  const store = createIdentityProviderStore(envelope)
  const federation = createFederation({
    database: test.database,
    envelope,
    experience: () => signInExperience.schema.parse(experience),
    outbound: { allowedNetworks: loopback, ...outbound },
    mocks,
    now,
  })
  const add: TestFederation['add'] = async (row) => {
    const id = newId()
    const { kind = 'social' } = row
    const named =
      kind === 'sso' ? { name: id, target: null, provider: 'OIDC' } : { name: null, target: id, provider: 'oidc' }
    await store.insert(test.database.query, { id, kind, ...named, domains: [], syncProfile: false, look: {}, ...row })
    return id
  }
  const begin: TestFederation['begin'] = async (id, request) => (await federation.open(id)).begin(request)
  const complete: TestFederation['complete'] = async (id, answer) => (await federation.open(id)).complete(answer)
  return {
    ...federation,
    ...{ test, add, begin, complete },
    connect: ({ issuer, clientId, clientSecret }, row) => add({ config: { issuer, clientId, clientSecret }, ...row }),
    async signIn(connectorId, provider) {
      const redirectUri = redirectUriOf(connectorId)
      const state = randomBytes(16).toString('base64url')
      const { url, kept } = await begin(connectorId, { redirectUri, state })
      const { searchParams } = await provider.signIn(url)
      // As it comes from the database.
      return complete(connectorId, {
        kept: JSON.parse(JSON.stringify(kept)),
        parameters: searchParams,
        redirectUri,
      })
    },
    async close() {
      await federation.close()
      await test.close()
    },
  }
}
