import { z } from 'zod'
import { id, jsonObject, tenantId, timestamp } from '../../base/schemas.ts'
import type { SsoIdentityRow } from './sso-identity-store.ts'
import type { User } from './user.ts'

/**
 * Who a user is elsewhere: `userId` at a provider (`target`, as `github`), with whatever else is known of the account
 * there.
 */
export const identity = z.object({ userId: id, details: jsonObject.optional() })
export type Identity = z.output<typeof identity>

/** By target. */
export const identities = z.record(z.string(), identity)

/** Who a user is at an enterprise's provider. */
export const ssoIdentity = z.strictObject({
  tenantId,
  id,
  userId: id,
  ssoConnectorId: id,
  issuer: z.string(),
  /** `sub` there. */
  identityId: z.string(),
  detail: jsonObject,
  createdAt: timestamp,
  updatedAt: timestamp,
})

export const toSsoIdentity = (row: SsoIdentityRow): z.input<typeof ssoIdentity> => ({
  tenantId: 'default',
  id: row.id,
  userId: row.user_id,
  ssoConnectorId: row.provider_id,
  issuer: row.issuer,
  identityId: row.subject,
  detail: row.detail,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime(),
})

export const listedIdentities = z.strictObject({
  socialIdentities: z.array(z.strictObject({ target: z.string(), identity })),
  ssoIdentities: z.array(z.strictObject({ ssoIdentity, ssoConnectorId: id })),
})

/** The identity at a target, own members only: `constructor` is no identity of anybody. */
export const identityAt = ({ identities }: Pick<User, 'identities'>, target: string): unknown =>
  Object.hasOwn(identities, target) ? identities[target] : undefined
