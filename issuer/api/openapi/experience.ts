import type { ProblemCode } from '../../base/errors/problems.ts'
import * as answersOfCalls from '../../sign-in/experience/answers.ts'
import { experienceRoutes } from '../../sign-in/experience/index.ts'
import type { ExperienceRoute } from '../../sign-in/experience/route.ts'
import { experienceStatuses } from '../../sign-in/experience/step-problems.ts'
import { bodiesOf, ofBodies, requestBodyOf } from './bodies.ts'
import { commonHeaders, referencesTo } from './headers.ts'
import { outputSchemas, type SchemaObject } from './json-schema.ts'
import { parametersOf } from './parameters.ts'
import { createProblemResponses, problemSchema } from './problem-responses.ts'

/**
 * The OpenAPI 3.1 document of the Experience API, made from the objects that serve it. It is one of its own: browsers
 * call it, with cookies, and no access token opens it.
 */
export const experienceDocument = ({ baseUrl }: { baseUrl: string }): SchemaObject => ({
  openapi: '3.1.1',
  info: {
    title: 'Surrogate Experience API',
    version: '1',
    description: introduction,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: `${baseUrl}/api/experience` }],
  tags: tags.map((name) => ({ name })),
  security: [{ browser: [] }],
  paths: Object.fromEntries(
    [...Map.groupBy(experienceRoutes, pathOf)].map(([path, group]) => [
      path,
      Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operationOf(route)])),
    ]),
  ),
  components: {
    securitySchemes: {
      browser: {
        type: 'apiKey',
        in: 'cookie',
        name: baseUrl.startsWith('https:') ? '__Host-surrogate_browser' : 'surrogate_browser',
        description: 'Set when the browser comes to `/oidc/auth`. Only pages that may sign people in can use it.',
      },
    },
    headers: commonHeaders,
    parameters,
    responses: failures.components(),
    schemas: {
      Problem: problemSchema,
      ...answers.components(),
      ...bodiesOf(experienceRoutes.filter(({ method }) => method !== 'GET')),
    },
  },
})

const introduction = `For sign-in pages of your own, in the shapes of Logto's. A browser that an application sent to \`/oidc/auth\` calls it.

\`next\` of \`GET /interaction\` says what is due; \`POST /submit\` does all of it in one transaction. Errors carry a stable \`code\`.
Members may be added to answers: ignore what you do not know.`

const everywhere: readonly ProblemCode[] = [
  'guard.invalid_input',
  'session.origin_not_allowed',
  'session.not_found',
  'rate_limit.exceeded',
  'server.error',
  'server.unavailable',
]
const failures = createProblemResponses([...everywhere, ...ofBodies])

const { verification, step, interactionAnswer } = answersOfCalls
const answers = outputSchemas({ Verification: verification, Step: step, Interaction: interactionAnswer })

const parameters: Record<string, SchemaObject> = {
  'Surrogate-Interaction': {
    name: 'Surrogate-Interaction',
    in: 'header',
    description: 'Which sign-in it is about. Without it: the newest of this browser.',
    schema: { type: 'string' },
  },
  'Logto-App-Id': {
    name: 'Logto-App-Id',
    in: 'header',
    description: 'Without `Surrogate-Interaction`: the newest of this browser for this application.',
    schema: { type: 'string' },
  },
}

const operationOf = (route: ExperienceRoute): SchemaObject => ({
  operationId: route.operationId,
  summary: route.summary,
  tags: [tagOf(route)],
  parameters: [
    ...parametersOf(route.params, 'path'),
    ...parametersOf(route.method === 'GET' ? route.body : undefined, 'query'),
    ...Object.values(referencesTo('parameters', Object.keys(parameters))),
  ],
  ...(route.method !== 'GET' && requestBodyOf(route)),
  responses: {
    [route.status]: successOf(route),
    ...(route.mayCreate && { 201: successOf(route) }),
    ...failures.responsesOf(
      [...everywhere, ...(route.body && route.method !== 'GET' ? ofBodies : []), ...(route.problems ?? [])],
      experienceStatuses,
    ),
  },
})

const successOf = ({ response }: ExperienceRoute): SchemaObject => ({
  description: response ? 'What was asked for.' : 'Done.',
  headers: referencesTo('headers', ['Logto-Core-Request-Id']),
  ...(response && { content: { 'application/json': { schema: answers.schemaOf(response) } } }),
})

const pathOf = ({ path }: ExperienceRoute): string => (path === '' ? '/' : path.replaceAll(/:(\w+)/g, '{$1}'))

/** By the first segment of the path; what is not named is about the interaction itself. */
const tagsByRoom = new Map([
  ['preflight', 'Verification'],
  ['verification', 'Verification'],
  ['profile', 'Profile'],
])
const tagOf = ({ path }: ExperienceRoute): string => tagsByRoom.get(path.split('/')[1] ?? '') ?? 'Interaction'
const tags = [...new Set(experienceRoutes.map(tagOf))]
