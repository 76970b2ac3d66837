import type { z } from 'zod'
import {
  appleConfig,
  gitHubConfig,
  googleConfig,
  microsoftConfig,
  openIdConfig,
  type SsoProviderName,
  socialFactories,
  ssoProviders,
} from './factories.ts'
import { FederationError } from './federation-error.ts'
import { gitHub } from './github.ts'
import type { IdentityProvider } from './identity-provider-store.ts'
import { fetchMetadata } from './metadata.ts'
import { mockClaims, mockSocial } from './mock.ts'
import { createOpenIdProtocol } from './openid.ts'
import type { ProviderFetch, ProviderRequests } from './outbound.ts'
import { type BeginFederation, type Claims, type OpenIdProfile, saysVerified } from './profile.ts'
import { apple, enterprise, google, googleWorkspace, microsoft, openId } from './profiles.ts'

interface Answer {
  kept: unknown
  parameters: URLSearchParams
  redirectUri: string
}

/** What is spoken with one provider. Everything throws `FederationError`. */
export interface Protocol {
  begin(request: BeginFederation): Promise<{
    url: string
    kept: Record<string, unknown>
  }>
  complete(answer: Answer): Promise<{
    claims: Claims
    emailVerified: boolean
    name?: string | undefined
    /** Instead of the claims, to be shown. */
    raw?: Record<string, unknown>
  }>
  /** Reads what the provider publishes. */
  check(): Promise<void>
}

type OpenParts = { fetch: ProviderFetch; connectorId: string; now: () => Date; mocks: boolean }

export const createProtocols = ({
  requests,
  mocks,
  now,
}: {
  requests: ProviderRequests
  mocks: boolean
  now: () => Date
}) => {
  const { begin, complete } = createOpenIdProtocol({ now })

  const openIdOf = (profile: OpenIdProfile, { fetch, connectorId }: OpenParts): Protocol => {
    const party = { connectorId, profile, fetch }
    return {
      begin: (request) => begin(party, request),
      async complete(answer) {
        const claims = await complete(party, answer)
        return { claims, emailVerified: profile.isEmailVerified(claims), ...profile.told?.(answer.parameters) }
      },
      async check() {
        // Not what was known: it is being changed.
        const metadata = await fetchMetadata(profile, fetch)
        // The guard looks again at every connect; here it can still be told who configures it.
        for (const url of [
          metadata.token_endpoint,
          metadata.jwks_uri,
          metadata.userinfo_endpoint ?? profile.discovery,
        ]) {
          const refused = await requests.refusal(url)
          if (refused !== undefined) throw new FederationError('target_not_allowed', refused)
        }
      },
    }
  }

  const ofEnterprise = (profile: OpenIdProfile, parts: OpenParts): Protocol => {
    const protocol = openIdOf(profile, parts)
    return {
      ...protocol,
      async complete(answer) {
        const claims = parts.mocks ? mockClaims(answer.parameters) : undefined
        return claims ? { claims, emailVerified: saysVerified(claims) } : protocol.complete(answer)
      },
    }
  }

  const gitHubOf = (config: z.output<typeof gitHubConfig>, { fetch }: OpenParts): Protocol => {
    const party = { ...config, scope: config.scope ?? 'read:user user:email', fetch }
    return {
      begin: (request) => gitHub.begin(party, request),
      async complete(answer) {
        const claims = await gitHub.complete(party, answer)
        return { claims, emailVerified: saysVerified(claims) }
      },
      check: async () => {},
    }
  }

  const mock: Protocol = {
    begin: async (request) => ({ url: mockSocial.url(request), kept: {} }),
    async complete({ parameters }) {
      const claims = mockSocial.claims(parameters)
      return { claims, emailVerified: saysVerified(claims), raw: Object.fromEntries(parameters) }
    },
    check: async () => {},
  }

  /** By factory. */
  const social: Record<string, (config: unknown, parts: OpenParts) => Protocol> = {
    oidc: (config, parts) => openIdOf(openId(openIdConfig.parse(config)), parts),
    'google-universal': (config, parts) => openIdOf(google(googleConfig.parse(config)), parts),
    'azuread-universal': (config, parts) => openIdOf(microsoft(microsoftConfig.parse(config)), parts),
    'apple-universal': (config, parts) => openIdOf(apple(appleConfig.parse(config), now), parts),
    'github-universal': (config, parts) => gitHubOf(gitHubConfig.parse(config), parts),
    'mock-social-connector': () => mock,
  }
  const sso: Record<SsoProviderName, (config: unknown, parts: OpenParts) => Protocol> = {
    OIDC: (config, parts) => ofEnterprise(enterprise(ssoProviders.OIDC.config.parse(config)), parts),
    Okta: (config, parts) => ofEnterprise(enterprise(ssoProviders.Okta.config.parse(config)), parts),
    AzureAdOidc: (config, parts) => ofEnterprise(enterprise(ssoProviders.AzureAdOidc.config.parse(config)), parts),
    GoogleWorkspace: (config, parts) => ofEnterprise(googleWorkspace(googleConfig.parse(config)), parts),
  }

  return (row: IdentityProvider): Protocol => {
    const table: Readonly<Record<string, (config: unknown, parts: OpenParts) => Protocol>> =
      row.kind === 'sso' ? sso : social
    if (!isConfigured(row, { mocks }))
      throw new FederationError('misconfigured', 'The connector is not configured, or of a kind that is not there.')
    return table[row.provider]!(row.config, { fetch: requests.of(row.id), connectorId: row.id, now, mocks })
  }
}

/** What a provider's configuration must be; undefined when there is no such kind. */
export const configSchemaOf = (
  { kind, provider }: Pick<IdentityProvider, 'kind' | 'provider'>,
  { mocks }: { mocks: boolean },
): z.ZodObject | undefined => {
  if (kind === 'sso')
    return Object.hasOwn(ssoProviders, provider) ? ssoProviders[provider as SsoProviderName].config : undefined
  const factory = socialFactories.find(({ id }) => id === provider)
  return factory !== undefined && (mocks || !('mock' in factory && factory.mock)) ? factory.config : undefined
}

export const isConfigured = (
  row: Pick<IdentityProvider, 'kind' | 'provider' | 'config'>,
  options: { mocks: boolean },
): boolean => configSchemaOf(row, options)?.safeParse(row.config).success === true
