import type { Recording } from '../../../base/recording.ts'
import { about } from '../operations.ts'
import { domainOf } from './jit.ts'
import { joinOrganizations, organizationsOfConnector, organizationsOfDomain } from './join-store.ts'

/**
 * Who joins which organization just by coming (just-in-time provisioning): each membership is new, has the default
 * roles of the organization, and is an event of it. Who is a member already is left alone. Answers the ids of the
 * organizations.
 */
export const join = async ({ trx, record }: Recording, userId: string, ids: readonly string[]): Promise<string[]> => {
  if (ids.length === 0) return []
  const joined = await joinOrganizations(trx, userId, ids)
  for (const id of joined) {
    await record({
      type: 'Organization.Membership.Updated',
      ...about(id),
      data: null,
      extras: { addedUserIds: [userId] },
    })
  }
  return joined
}

/** The organizations whose domain the address is of. It must be the user's, verified. */
export const joinByEmail = async (
  recording: Recording,
  { userId, email }: { userId: string; email: string },
): Promise<string[]> => join(recording, userId, await organizationsOfDomain(recording.trx, domainOf(email)))

/** The organizations that an enterprise connector leads to, at every sign-in by it. */
export const joinByConnector = async (
  recording: Recording,
  { userId, ssoConnectorId }: { userId: string; ssoConnectorId: string },
): Promise<string[]> => join(recording, userId, await organizationsOfConnector(recording.trx, ssoConnectorId))
