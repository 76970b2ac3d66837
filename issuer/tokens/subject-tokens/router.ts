import { type Route, route } from '../../base/route.ts'
import { type SubjectTokenDependencies, subjectTokenOperations } from './mint.ts'
import { pendingAnswer, subjectTokenAnswer, subjectTokenRequest } from './subject-token.ts'

export const impersonationRoutes = (dependencies: SubjectTokenDependencies): Route[] => {
  const subjectTokens = subjectTokenOperations(dependencies)
  return [
    route({
      method: 'POST',
      path: '/subject-tokens',
      operationId: 'createSubjectToken',
      summary:
        'Get a short-lived, single-use token for a user, to be exchanged for an access token that represents that user; 202 when they are asked first',
      scope: 'impersonation',
      freshProof: true,
      body: subjectTokenRequest,
      status: 201,
      response: subjectTokenAnswer,
      pending: pendingAnswer,
      problems: [
        'entity.relation_foreign_key_not_found',
        'entity.not_exists_with_id',
        'user.suspended',
        'impersonation.denied',
        'impersonation.policy_unavailable',
        'impersonation.actor_token_invalid',
        'impersonation.too_many_requests',
        'impersonation.request_not_approved',
      ],
      handle: (context) => subjectTokens.mint(context.body, context),
    }),
  ]
}
