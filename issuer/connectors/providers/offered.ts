import { z } from 'zod'
import { socialFactories, ssoProviders } from './factories.ts'
import type { IdentityProvider } from './identity-provider-store.ts'

const picture = z
  .url({ protocol: /^https$/ })
  .max(2_048)
  .optional()
  .catch(undefined)
/** What operators may say of a connector; other members are kept. */
const lookSchema = z.looseObject({
  name: z
    .union([z.string(), z.record(z.string(), z.string())])
    .optional()
    .catch(undefined),
  displayName: z.string().optional().catch(undefined),
  logo: picture,
  logoDark: picture,
  darkLogo: picture,
})

const nameOfProvider = ({ kind, provider }: IdentityProvider): string =>
  kind === 'sso'
    ? ((ssoProviders as Record<string, { name: string } | undefined>)[provider]?.name ?? provider)
    : (socialFactories.find(({ id }) => id === provider)?.name ?? provider)

export const toOffered = (row: IdentityProvider) => {
  const { name, displayName, logo, logoDark, darkLogo = logoDark } = lookSchema.parse(row.look)
  const named = typeof name === 'string' ? name : (name?.en ?? Object.values(name ?? {})[0])
  return {
    id: row.id,
    kind: row.kind,
    target: row.target ?? row.id,
    name: displayName || named || row.name || nameOfProvider(row),
    ...(logo !== undefined && { logo }),
    ...(darkLogo !== undefined && { darkLogo }),
    domains: row.domains,
    syncProfile: row.syncProfile,
  }
}
