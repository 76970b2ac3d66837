import { z } from 'zod'
import { id, jsonObject } from '../../base/schemas.ts'
import type { User } from './user.ts'

/**
 * Who a user is elsewhere: `userId` at a provider (`target`, as `github`), with whatever else is known of the account
 * there.
 */
export const identity = z.object({ userId: id, details: jsonObject.optional() })
export type Identity = z.output<typeof identity>

/** By target. */
export const identities = z.record(z.string(), identity)

export const listedIdentities = z.strictObject({
  socialIdentities: z.array(z.strictObject({ target: z.string(), identity })),
  ssoIdentities: z.array(jsonObject),
})

/** The identity at a target, own members only: `constructor` is no identity of anybody. */
export const identityAt = ({ identities }: Pick<User, 'identities'>, target: string): unknown =>
  Object.hasOwn(identities, target) ? identities[target] : undefined
