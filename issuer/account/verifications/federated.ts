import { newId } from '../../../platform/ids.ts'
import { problem } from '../../base/errors/problems.ts'
import { addressKey } from '../../base/rate-limits/address-key.ts'
import { FederationError, type OfferedConnector } from '../../connectors/federation.ts'
import { federationProblem } from '../../connectors/federation-problems.ts'
import { isSameText, openRequest, sealRequest } from '../../interaction/federation-request.ts'
import { findHolder } from '../../interaction/identity-store.ts'
import { countMessage } from '../../messages/limit-store.ts'
import { noLongerSignedIn } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import {
  beginVerification,
  completeVerification,
  takeVerificationTry,
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

/** How long a person may stay at the provider, in seconds. */
const awaitedSeconds = 600
/** Of one address, in so many seconds. */
const limit = { most: 100, seconds: 600 } as const

export const createFederatedVerifications = ({
  database: { query },
  federation,
  envelope,
  hmac,
  settings,
  audit,
}: VerificationDependencies): FederatedVerifications => {
  /** Throws 404 for one that the settings do not let people come by. */
  const enabled = async (connectorId: string): Promise<OfferedConnector> => {
    const connector = await federation.get(connectorId)
    const { singleSignOnEnabled, socialSignInConnectorTargets } = settings.experience()
    const isEnabled =
      connector?.kind === 'sso' ? singleSignOnEnabled : socialSignInConnectorTargets.includes(connector?.target ?? '')
    if (!connector || !isEnabled) throw federationProblem('connector_not_found')
    return connector
  }

  const note = ({ person }: AccountContext, connectorId: string, error?: FederationError) =>
    audit.record({
      key: 'Account.Verification.federated',
      result: error ? 'Error' : 'Success',
      applicationId: person.clientId,
      userId: person.userId,
      payload: {
        ...{ ip: person.ip, userAgent: person.userAgent, connectorId },
        ...{ error: error?.reason, errorDescription: error?.message },
      },
    })

  /** What a provider does wrong is told by its code, and noted with its reason. */
  const asking = async <Result>(context: AccountContext, connectorId: string, ask: () => Promise<Result>) => {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof FederationError)) throw error
      note(context, connectorId, error)
      throw federationProblem(error.reason, error)
    }
  }

  return {
    async begin(context, { connectorId, state, redirectUri }) {
      const { person } = context
      await enabled(connectorId)
      const key = hmac('message-limits', 'federation', addressKey(person.ip))
      if ((await countMessage(query, key, limit.most, limit.seconds)) > limit.most) {
        throw problem('rate_limit.exceeded', { headers: { 'Retry-After': String(limit.seconds) } })
      }
      const { url, kept } = await asking(context, connectorId, () =>
        federation.begin(connectorId, { redirectUri, state }),
      )
      const id = newId()
      const begun = await beginVerification(query, {
        ...{ id, person, kind: 'federated', purpose: 'bind', data: {}, seconds: awaitedSeconds },
        secret: sealRequest(envelope, id, { connectorId, redirectUri, state, kept }),
      })
      if (!begun) throw noLongerSignedIn()
      return { ...begun, url }
    },

    async verify(context, { id, parameters }) {
      const { person } = context
      const taken = await takeVerificationTry(query, person, { id, kinds: ['federated'], most: 1 })
      if (taken === undefined || taken === 'exceeded' || !taken.secret) throw problem('verification_record.not_found')
      const { connectorId, redirectUri, state, kept } = openRequest(envelope, id, taken.secret)
      const named = parameters.get('state')
      if (named !== null && !isSameText(named, state)) throw federationProblem('invalid_response')
      // Pages of applications compare it themselves, and may leave it out here.
      parameters.set('state', state)
      const { syncProfile } = await enabled(connectorId)
      const { kind, target, subject, issuer, name, avatar, email, emailVerified, raw } = await asking(
        context,
        connectorId,
        () => federation.complete(connectorId, { kept, parameters, redirectUri }),
      )
      const federated = {
        ...{ connectorId, kind, target, subject, issuer, name, avatar, raw, syncProfile },
        email: emailVerified ? email : undefined,
      }
      const purpose = (await findHolder(query, federated)) === person.userId ? 'reauth' : 'bind'
      const data = { federated }
      const done = await completeVerification(query, person, { id, data, purpose, seconds: reauthenticationSeconds })
      if (!done) throw problem('verification_record.not_found')
      note(context, connectorId)
      return { ...done, purpose }
    },
  }
}
