import { z } from 'zod'
import { id, jsonObject, tenantId, timestamp } from '../../base/schemas.ts'
import { emailDomain } from '../../directory/organizations/jit/jit.ts'
import { withMasks } from '../connector.ts'
import { type SsoProviderName, ssoProviders, ssoSecrets } from '../providers/factories.ts'
import type { IdentityProvider } from '../providers/identity-provider-store.ts'

const providerName = z.enum(Object.keys(ssoProviders) as [SsoProviderName, ...SsoProviderName[]])
const connectorName = z.string().trim().min(1).max(128)
/** Each once; whether others have them is the database's to say. */
const domains = z.array(emailDomain).max(100)
const picture = z.url({ protocol: /^https$/ }).max(2_048)
/** What pages show. */
const branding = z.object({
  displayName: z.string().max(128).optional(),
  logo: picture.optional(),
  darkLogo: picture.optional(),
})

export const newSsoConnector = z.object({
  providerName,
  connectorName,
  /** Without one it is not offered until it has one. */
  config: jsonObject.optional(),
  domains: domains.default([]),
  branding: branding.default({}),
  syncProfile: z.boolean().default(false),
})
export type NewSsoConnector = z.output<typeof newSsoConnector>

export const ssoConnectorPatch = z.object({
  connectorName: connectorName.optional(),
  /** All of it anew; a masked secret stays. */
  config: jsonObject.optional(),
  domains: domains.optional(),
  branding: branding.optional(),
  syncProfile: z.boolean().optional(),
})
export type SsoConnectorPatch = z.output<typeof ssoConnectorPatch>

export const ssoConnector = z.strictObject({
  tenantId,
  id,
  providerName: z.string(),
  connectorName: z.string(),
  config: jsonObject,
  domains: z.array(z.string()),
  branding: jsonObject,
  syncProfile: z.boolean(),
  enableTokenStorage: z.literal(false),
  createdAt: timestamp,
  /** Of the kind of provider. */
  name: z.string(),
  providerType: z.literal('oidc'),
})

export const toSsoConnector = (row: IdentityProvider): z.input<typeof ssoConnector> => ({
  tenantId: 'default',
  id: row.id,
  providerName: row.provider,
  connectorName: row.name ?? '',
  config: withMasks(ssoSecrets, row.config),
  domains: row.domains,
  branding: row.look,
  syncProfile: row.syncProfile,
  enableTokenStorage: false,
  createdAt: row.createdAt.getTime(),
  name: ssoProviders[row.provider as SsoProviderName]?.name ?? row.provider,
  providerType: 'oidc',
})

export const ssoProvider = z.strictObject({
  providerName: z.string(),
  name: z.string(),
  providerType: z.literal('oidc'),
  configSchema: jsonObject,
})

export const listSsoProviders = (): z.input<typeof ssoProvider>[] =>
  Object.entries(ssoProviders).map(([provider, { name, config }]) => ({
    providerName: provider,
    name,
    providerType: 'oidc',
    configSchema: z.toJSONSchema(config, { io: 'input' }) as Record<string, unknown>,
  }))

/** Mail providers for everybody: nobody owns the addresses of their domains. */
export const publicDomains: ReadonlySet<string> = new Set(
  `aol.com fastmail.com gmail.com gmx.com gmx.de gmx.net googlemail.com hey.com hotmail.com icloud.com live.com mac.com
   mail.com mail.ru me.com msn.com naver.com outlook.com proton.me protonmail.com qq.com t-online.de web.de yahoo.com
   yahoo.co.jp yandex.com yandex.ru 126.com 163.com`.split(/\s+/),
)
