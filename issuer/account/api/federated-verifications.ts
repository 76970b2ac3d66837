import { z } from 'zod'
import type { Route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute } from './route.ts'
import { begunVerification, toBegun, verifiedVerification } from './verifications.ts'

export const federatedVerification = begunVerification.extend({ authorizationUri: z.string() })

const redirectUri = z.url({ protocol: /^https?$/ }).max(2_048)

/** Identities at other providers, by the page of an application that gets their answer. */
export const federatedVerificationRoutes = ({ verifications }: AccountOperations): Route[] => [
  accountRoute({
    method: 'POST',
    path: '/verifications/social',
    operationId: 'createMyIdentityVerification',
    summary: 'Tells where an identity provider confirms who somebody is there.',
    body: z.object({ connectorId: id, state: z.string().min(1).max(1_024), redirectUri }),
    status: 201,
    response: federatedVerification,
    problems: ['entity.not_found', 'session.connector_unavailable', 'rate_limit.exceeded'],
    async handle(call) {
      const { url: authorizationUri, ...begun } = await verifications.federated.begin(call, call.body)
      return { body: { ...toBegun(begun), authorizationUri } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/social/verify',
    operationId: 'verifyMyIdentity',
    summary: 'Takes the answer: an identity that is linked proves who it is, another one waits to be linked.',
    body: z.object({
      verificationRecordId: id,
      connectorData: z.record(z.string(), z.unknown()).describe('The parameters with which the browser came back.'),
    }),
    status: 200,
    response: verifiedVerification,
    problems: [
      'verification_record.not_found',
      'entity.not_found',
      'session.connector_refused',
      'session.connector_answer_invalid',
      'session.connector_unavailable',
    ],
    async handle(call) {
      const { verificationRecordId, connectorData } = call.body
      const parameters = new URLSearchParams()
      for (const [name, value] of Object.entries(connectorData)) {
        // The address is that of the request; what is no parameter is none of the provider's.
        if (name !== 'redirectUri' && typeof value === 'string') parameters.append(name, value)
      }
      await verifications.federated.verify(call, { id: verificationRecordId, parameters })
      return { body: { verificationRecordId } }
    },
  }),
]
