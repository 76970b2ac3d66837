import { type Route, route } from '../../base/route.ts'
import {
  type SubjectTokenDependencies,
  subjectTokenAnswer,
  subjectTokenOperations,
  subjectTokenRequest,
} from './subject-token.ts'

export const impersonationRoutes = (dependencies: SubjectTokenDependencies): Route[] => {
  const subjectTokens = subjectTokenOperations(dependencies)
  return [
    route({
      method: 'POST',
      path: '/subject-tokens',
      operationId: 'createSubjectToken',
      summary:
        'Get a short-lived, single-use token for a user, to be exchanged for an access token that represents that user',
      scope: 'impersonation',
      body: subjectTokenRequest,
      status: 201,
      response: subjectTokenAnswer,
      problems: [
        'entity.relation_foreign_key_not_found',
        'user.suspended',
        'impersonation.denied',
        'impersonation.policy_unavailable',
      ],
      handle: async (context) => ({ body: await subjectTokens.mint(context.body, context) }),
    }),
  ]
}
