import { type Query, statement } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { IdentityProvider } from './identity-provider-store.ts'

const foreign = statement(
  'identity-provider-foreign-identities',
  `SELECT count(*) AS count FROM user_identities i JOIN users u ON u.id = i.user_id
   WHERE i.target = $1 AND u.identities -> $1 -> 'details' -> 'rawData' ->> 'iss' <> $2`,
)

/**
 * Throws 422 when people are known at the target by what another issuer told: of a connector that was deleted, whose
 * subjects would be somebody else's here.
 */
export const refuseForeign = async (query: Query, { target, config }: IdentityProvider): Promise<void> => {
  if (config.issuer === undefined) return
  refuseAny(onlyRow(await query<{ count: number | string }>(foreign, [target, config.issuer])))
}

const refuseAny = ({ count }: { count: number | string }): void => {
  if (Number(count) > 0) throw problem('connector.has_identities', { data: { identities: Number(count) } })
}

/** Where a connector leads. Its subjects are somebody else elsewhere. */
export const originOf = ({ config }: Pick<IdentityProvider, 'config'>): string => {
  const { issuer, endpoint, cloudInstance } = config
  return JSON.stringify([issuer, endpoint, cloudInstance])
}

const identities = statement(
  'identity-provider-identities',
  `SELECT (SELECT count(*) FROM user_identities WHERE target = $2)
     + (SELECT count(*) FROM user_sso_identities WHERE provider_id = $1) AS count`,
)

/**
 * Throws 422 when the connector is to lead elsewhere and people are known by it. The row is locked: who gets an
 * identity by it at the same time has got it before, or finds that it leads elsewhere (`Federation.isStillFrom`).
 */
export const keepOrigin = async (
  query: Query,
  current: IdentityProvider,
  config: Record<string, unknown>,
): Promise<void> => {
  if (originOf({ config }) === originOf(current)) return
  refuseAny(onlyRow(await query<{ count: number | string }>(identities, [current.id, current.target])))
}
