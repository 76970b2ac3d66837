import { type Database, queryOf } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { notFound, requireFound } from '../base/errors/not-found.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import type { NotifyOwner } from '../base/owner-notices.ts'
import type { OperationContext } from '../base/route.ts'
import type { Identity } from '../directory/users/identity.ts'
import { identityOperations } from '../directory/users/identity-operations.ts'
import type { User } from '../directory/users/user.ts'
import { findUser } from '../directory/users/user-store.ts'
import type { Federation } from './federation.ts'
import { asProblems } from './federation-problem.ts'
import type { FederatedAssertion } from './providers/assertion.ts'
import { createRequestStore } from './providers/request-store.ts'

export interface IdentityDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
  envelope: Envelope
  federation: Federation
  notifyOwner: NotifyOwner
}

/** As users have it: addresses only when the provider says that they are the person's. */
const identityOf = (assertion: FederatedAssertion): Identity => {
  const { subject, name, avatar, email, emailVerified, phone, phoneVerified, raw } = assertion
  const told = { name, avatar, ...(emailVerified && { email }), ...(phoneVerified && { phone }) }
  const known = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined))
  return { userId: subject, details: { id: subject, ...known, rawData: raw } }
}

const parametersOf = (data: Record<string, unknown>): URLSearchParams => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(data)) if (typeof value === 'string') parameters.append(name, value)
  return parameters
}

/**
 * The answer to a request of `POST /connectors/:id/authorization-uri`: what came to the redirect URI. It is good once.
 * Throws 422 when somebody else is that person.
 */
export const linkByConnector = ({ database, mutate, envelope, federation, notifyOwner }: IdentityDependencies) => {
  const requests = createRequestStore(envelope)
  const { set } = identityOperations({ mutate, notifyOwner })
  return async (
    context: OperationContext,
    input: { userId: string; connectorId: string; connectorData: Record<string, unknown> },
  ): Promise<User['identities']> => {
    const { userId, connectorId, connectorData } = input
    requireFound(await findUser(database.knex, userId), userId, notFound)
    const { state } = connectorData
    const asked =
      typeof state === 'string' ? await requests.take(database.query, { providerId: connectorId, state }) : undefined
    const assertion = await asProblems(async () =>
      (await federation.open(connectorId)).complete({
        kept: asked?.kept ?? {},
        parameters: parametersOf(connectorData),
        redirectUri: asked?.redirectUri ?? '',
      }),
    )
    if (assertion.kind !== 'social') throw notFound(connectorId)
    return set(context, userId, assertion.target, identityOf(assertion), async (trx) => {
      if (!(await federation.isStillFrom(queryOf(trx), assertion)))
        throw problem('connector.authorization_failed', { data: { reason: 'invalid_response' } })
    })
  }
}
