import {
  authenticationVerification,
  begunVerification,
  registrationVerification,
  verifiedVerification,
} from '../../account/api/verifications.ts'
import type { ProblemCode } from '../../base/errors/problems.ts'
import type { RouteFor } from '../../base/route.ts'
import { mfaVerification } from '../../directory/users/factors/mfa-verification.ts'
import { user } from '../../directory/users/user.ts'
import { bodiesOf, ofBodies, requestBodyOf } from './bodies.ts'
import { commonHeaders, referencesTo, text } from './headers.ts'
import { outputSchemas, type SchemaObject } from './json-schema.ts'
import { parametersOf } from './parameters.ts'
import { createProblemResponses, problemSchema } from './problem-responses.ts'

type AccountRoute = RouteFor<'account'>

/**
 * The OpenAPI 3.1 document of the Account API, made from the objects that serve it. It is one of its own: people call
 * it through the applications that they signed in for, about themselves.
 */
export const accountDocument = ({
  routes,
  baseUrl,
}: {
  routes: readonly AccountRoute[]
  baseUrl: string
}): SchemaObject => ({
  openapi: '3.1.1',
  info: {
    title: 'Surrogate Account API',
    version: '1',
    description: introduction,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: `${baseUrl}/api` }],
  tags: [...new Set(routes.map(tagOf))].map((name) => ({ name })),
  security: [{ person: [] }],
  paths: Object.fromEntries(
    [...Map.groupBy(routes, ({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'))].map(([path, group]) => [
      path,
      Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operationOf(route)])),
    ]),
  ),
  components: {
    securitySchemes: {
      person: {
        type: 'http',
        scheme: 'bearer',
        description: 'The opaque access token with `openid` that a first-party application got without `resource`.',
      },
    },
    headers: { ...commonHeaders, 'WWW-Authenticate': text('RFC 6750: what the access token lacks.') },
    parameters,
    responses: failures.components(),
    schemas: { Problem: problemSchema, ...answers.components(), ...bodiesOf(routes) },
  },
})

const introduction = `For pages on which people look after their own accounts, in the shapes of Logto's.

What is sensitive needs a verification of the last ten minutes, named in \`logto-verification-id\`. Settings say which fields people see
and change. Errors carry a stable \`code\`. Members may be added to answers: ignore what you do not know.`

const everywhere: readonly ProblemCode[] = [
  'guard.invalid_input',
  'auth.authorization_header_missing',
  'auth.authorization_token_type_not_supported',
  'auth.unauthorized',
  'auth.forbidden',
  'impersonation.not_allowed',
  'server.error',
  'server.unavailable',
]
const failures = createProblemResponses([...everywhere, ...ofBodies], {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
})

const answers = outputSchemas({
  MfaVerification: mfaVerification,
  User: user,
  BegunVerification: begunVerification,
  VerifiedVerification: verifiedVerification,
  RegistrationVerification: registrationVerification,
  AuthenticationVerification: authenticationVerification,
})

const parameters: Record<string, SchemaObject> = {
  'logto-verification-id': {
    name: 'logto-verification-id',
    in: 'header',
    description: 'The verification by which the person proved, within ten minutes, who they are.',
    schema: { type: 'string' },
  },
}

const isSensitive = ({ problems = [] }: AccountRoute) => problems.includes('verification_record.permission_denied')

const operationOf = (route: AccountRoute): SchemaObject => ({
  operationId: route.operationId,
  summary: route.summary,
  tags: [tagOf(route)],
  parameters: [
    ...parametersOf(route.params, 'path'),
    ...parametersOf(route.query, 'query'),
    ...(isSensitive(route) ? Object.values(referencesTo('parameters', Object.keys(parameters))) : []),
  ],
  ...requestBodyOf(route),
  responses: {
    [route.status]: successOf(route),
    ...failures.responsesOf(
      [...everywhere, ...(route.body ? ofBodies : []), ...(route.problems ?? [])],
      route.problemStatuses,
    ),
  },
})

const successOf = ({ response }: AccountRoute): SchemaObject => ({
  description: response ? 'What was asked for.' : 'Done.',
  headers: referencesTo('headers', ['Logto-Core-Request-Id']),
  ...(response && { content: { 'application/json': { schema: answers.schemaOf(response) } } }),
})

const tagOf = ({ path }: AccountRoute): string => (path.startsWith('/verifications') ? 'Verifications' : 'Account')
