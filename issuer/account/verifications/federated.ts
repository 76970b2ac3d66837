import { problem } from '../../base/errors/problems.ts'
import { federationProblem } from '../../connectors/federation-problems.ts'
import { isSameText, openRequest } from '../../interaction/federation-request.ts'
import { awaitedSeconds, createFederationRequests } from '../../interaction/federation-requests.ts'
import { findHolder } from '../../interaction/identity-store.ts'
import { noLongerSignedIn } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import {
  beginVerification,
  completeVerification,
  findWaitingVerification,
  type VerificationId,
  type VerificationPurpose,
} from '../verification-store.ts'
import type { VerificationDependencies } from './dependencies.ts'

/** Identity providers: an identity that is the person's proves who they are, another one may be linked. */
export interface FederatedVerifications {
  /** Where the browser goes. Throws 404 for a connector that is not there or not enabled, 502 for one out of reach. */
  begin(
    context: AccountContext,
    asked: { connectorId: string; state: string; redirectUri: string },
  ): Promise<VerificationId & { url: string }>
  /** `parameters`: those with which the browser came back; good for one answer. */
  verify(
    context: AccountContext,
    answer: { id: string; parameters: URLSearchParams },
  ): Promise<VerificationId & { purpose: VerificationPurpose }>
}

export const createFederatedVerifications = ({
  database: { query },
  audit,
  settings,
  ...dependencies
}: VerificationDependencies): FederatedVerifications => {
  const requests = createFederationRequests({ ...dependencies, query, settings: settings.experience })

  const note = ({ person }: AccountContext, connectorId: string, error?: string, errorDescription?: string) =>
    audit.record({
      key: 'Account.Verification.federated',
      result: error === undefined ? 'Success' : 'Error',
      applicationId: person.clientId,
      userId: person.userId,
      payload: { ip: person.ip, userAgent: person.userAgent, connectorId, error, errorDescription },
    })

  return {
    async begin(context, { connectorId, ...page }) {
      const { person } = context
      let begun: VerificationId | undefined
      const sent = await requests.send({ connectorId, ip: person.ip, page }, async ({ id, sealed: secret }) => {
        const proof = { id, person, kind: 'federated', purpose: 'bind', data: {} } as const
        begun = await beginVerification(query, { ...proof, secret, seconds: awaitedSeconds })
        return begun !== undefined
      })
      switch (sent.outcome) {
        case 'begun':
          return { ...begun!, url: sent.url }
        case 'refused':
          throw federationProblem('connector_not_found')
        case 'too_many_requests':
          throw problem('rate_limit.exceeded', { headers: { 'Retry-After': '600' } })
        case 'over':
          throw noLongerSignedIn()
        case 'unavailable':
          note(context, connectorId, sent.error.reason, sent.error.message)
          throw federationProblem(sent.error.reason, sent.error)
      }
    },

    async verify(context, { id, parameters }) {
      const { person } = context
      const waiting = await findWaitingVerification(query, person, { id, kinds: ['federated'] })
      if (!waiting?.secret) throw problem('verification_record.not_found')
      const asked = openRequest(dependencies.envelope, id, waiting.secret)
      const { connectorId, state } = asked
      const named = parameters.get('state')
      if (named !== null && !isSameText(named, state)) throw federationProblem('invalid_response')
      // Pages of applications compare it themselves, and may leave it out here.
      parameters.set('state', state)
      const completed = await requests.complete(id, asked, parameters)
      if ('reason' in completed) {
        if (completed.reason === 'used') throw problem('verification_record.not_found')
        note(context, connectorId, completed.reason, completed.description)
        throw federationProblem(completed.reason)
      }
      const data = { federated: completed.identity }
      const purpose = (await findHolder(query, completed.identity)) === person.userId ? 'reauth' : 'bind'
      const done = await completeVerification(query, person, { id, data, purpose, seconds: reauthenticationSeconds })
      if (!done) throw problem('verification_record.not_found')
      note(context, connectorId)
      return { ...done, purpose }
    },
  }
}
