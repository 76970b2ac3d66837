import { z } from 'zod'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import type { Mutate } from '../../base/mutate.ts'
import { type Route, route } from '../../base/route.ts'
import { readIdentifier } from './identifier.ts'
import { lockoutKeys } from './lockout/lockout-keys.ts'
import { clearFailures, holdersOf, knownDevicesOf, usersNamed } from './lockout/lockout-store.ts'

export interface LockoutDependencies {
  mutate: Mutate
  hmac: Hmac
}

const maxTargets = 100

/** Ends locks: of an account with all browsers that it knows, and of identifiers that are nobody's. */
export const lockoutRoutes = ({ mutate, hmac }: LockoutDependencies): Route[] => {
  const keys = lockoutKeys(hmac)

  return [
    route({
      method: 'POST',
      path: '/sentinel-activities/delete',
      operationId: 'deleteSentinelActivities',
      summary:
        'Forgets the failures to sign in of users, by username, email, phone or id, and so ends their locks. Applications have none.',
      scope: 'users',
      body: z.object({
        targetType: z.enum(['User', 'App']),
        targets: z.array(z.string().min(1).max(256)).max(maxTargets),
      }),
      status: 204,
      handle: (context) =>
        mutate(context, async ({ trx, note }) => {
          const { targetType, targets } = context.body
          if (targetType === 'App') return
          const identifiers = targets.map(readIdentifier).filter((identifier) => identifier !== undefined)
          const spellings = [...targets, ...identifiers.flatMap(({ spellings }) => spellings)]
          const userIds = await usersNamed(trx, [...new Set(spellings)])
          const devices = await knownDevicesOf(trx, userIds)
          const holders = await holdersOf(trx, userIds)
          await clearFailures(trx, [
            ...identifiers.flatMap(({ canonical }) => [keys.identifier(canonical), keys.recovery(canonical)]),
            ...userIds.flatMap((id) => [keys.user(id), keys.secondFactor(id), keys.recovery(id)]),
            ...devices.map(({ userId, digest }) => keys.device(userId, digest)),
            ...holders.map(({ userId, id }) => keys.holder(userId, id)),
          ])
          note({ ...(userIds.length === 1 && { userId: userIds[0]! }), details: { userIds } })
        }),
    }),
  ]
}
