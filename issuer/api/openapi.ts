import { fittingScopes, managementScopes } from '../base/authorization.ts'
import { type ManagementRoute, takesKey } from '../base/route.ts'
import { hasVersion, takesIfMatch } from '../base/versions/entities.ts'
import { rehearsal, takesDryRun } from './dry-run.ts'
import { bodiesOf, capitalized, requestBodyOf } from './openapi/bodies.ts'
import { commonHeaders, referencesTo, text } from './openapi/headers.ts'
import { outputSchemas, type SchemaObject } from './openapi/json-schema.ts'
import { managementProblems, sharedManagementProblems } from './openapi/management-problems.ts'
import { parametersOf } from './openapi/parameters.ts'
import { createProblemResponses, problemSchema } from './openapi/problem-responses.ts'
import { publicPaths } from './openapi/public-paths.ts'
import { records } from './openapi/records.ts'
import { eventComponents, webhooks } from './openapi/webhooks.ts'

/**
 * The OpenAPI 3.1 document of the Management API, made from the objects that serve it: paths, parameters, bodies,
 * answers, scopes and problems cannot be other than what the server does.
 */
export const openApiDocument = ({
  routes,
  baseUrl,
}: {
  routes: readonly ManagementRoute[]
  baseUrl: string
}): SchemaObject => ({
  openapi: '3.1.1',
  info: {
    title: 'Surrogate Management API',
    version: '1',
    description: introduction,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  servers: [{ url: `${baseUrl}/api` }],
  tags: tagsOf(routes),
  paths: { ...publicPaths, ...pathsOf(routes) },
  webhooks: webhooks(),
  components: {
    securitySchemes: {
      oauth2: {
        type: 'oauth2',
        description: `An access token of a machine-to-machine application for the resource \`${baseUrl}/api\`.`,
        flows: { clientCredentials: { tokenUrl: `${baseUrl}/oidc/token`, scopes: managementScopes } },
      },
    },
    headers,
    parameters,
    responses: failures.components(),
    schemas: { Problem: problemSchema, ...answers.components(), ...bodiesOf(routes), ...eventComponents() },
  },
})

const introduction = `Users, roles, API resources, applications, webhooks, impersonation and signing keys.

Each operation names the scopes of which one is enough. Lists are paged by \`page\` and \`page_size\`; \`Total-Number\` and \`Link\` tell
the rest. Errors carry a stable \`code\`. Times are milliseconds since the epoch. Members may be added to answers: ignore what you do
not know.`

const answers = outputSchemas(records)
const failures = createProblemResponses(sharedManagementProblems, {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  412: ['ETag'],
})

const headers: Record<string, SchemaObject> = {
  ...commonHeaders,
  'Total-Number': {
    description: 'Rows on all pages together; with `enableCap=true` those that were counted.',
    schema: { type: 'integer', minimum: 0 },
  },
  'Total-Number-Is-Capped': {
    description: '`true` when there are more than `Total-Number` says.',
    schema: { const: 'true' },
  },
  Link: text('RFC 8288: `first`, `prev`, `next` and `last`; of a long query only `next`, or nothing.'),
  'WWW-Authenticate': text('RFC 6750: what the access token lacks.'),
  ETag: text('RFC 9110: the version of the record, for `If-Match`.'),
  'Idempotent-Replayed': {
    description: '`true` when this is the answer to an earlier request with the same key.',
    schema: { const: 'true' },
  },
}

const parameters: Record<string, SchemaObject> = {
  page: {
    name: 'page',
    in: 'query',
    description: 'Counts from 1, which is where a list begins.',
    schema: { type: 'integer', minimum: 1, maximum: 999_999_999 },
  },
  page_size: {
    name: 'page_size',
    in: 'query',
    description: 'Rows of a page, 20 when only `page` is given.',
    schema: { type: 'integer', minimum: 1, maximum: 100 },
  },
  'Last-Event-ID': {
    name: 'Last-Event-ID',
    in: 'header',
    description: 'The `id` of the last event that was read: the stream goes on behind it.',
    schema: { type: 'string' },
  },
  'Surrogate-Session': {
    name: 'Surrogate-Session',
    in: 'header',
    description:
      'The claim `sid` of the token with which your API was called: the change joins the time line of that session.',
    schema: { type: 'string', pattern: '^[\\w-]{1,21}$' },
    example: 'i9t3y7u1i5o9p3a7s1d5f',
  },
  'If-Match': {
    name: 'If-Match',
    in: 'header',
    description: 'RFC 9110 §13.1.1: the `ETag` that was read. It is 412 when somebody has changed the record since.',
    schema: { type: 'string' },
    example: '"7"',
  },
  dryRun: {
    name: 'dryRun',
    in: 'query',
    description: '`true`: nothing is deleted; the answer says what would be.',
    schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'The same request under the same key is carried out once, and answered the same for 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
}

const pathsOf = (routes: readonly ManagementRoute[]): Record<string, SchemaObject> => {
  const byPath = Map.groupBy(routes, ({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'))
  return Object.fromEntries(
    [...byPath].map(([path, group]) => [
      path,
      Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operationOf(route)])),
    ]),
  )
}

const operationOf = (route: ManagementRoute): SchemaObject => ({
  operationId: route.operationId,
  summary: route.summary,
  tags: [tagOf(route)],
  security: fittingScopes(route).map((scope) => ({ oauth2: [scope] })),
  parameters: [
    ...parametersOf(route.params, 'path'),
    ...parametersOf(route.query, 'query'),
    ...(route.paged ? ['page', 'page_size'] : []).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ...(takesKey(route) ? [{ $ref: '#/components/parameters/Idempotency-Key' }] : []),
    ...(route.stream ? [{ $ref: '#/components/parameters/Last-Event-ID' }] : []),
    ...(route.method === 'GET' ? [] : [{ $ref: '#/components/parameters/Surrogate-Session' }]),
    ...(takesIfMatch(route) ? [{ $ref: '#/components/parameters/If-Match' }] : []),
    ...(takesDryRun(route) ? [{ $ref: '#/components/parameters/dryRun' }] : []),
  ],
  ...requestBodyOf(route),
  ...(route.paged === 'optional' && { description: 'The whole list when neither `page` nor `page_size` is given.' }),
  responses: {
    [route.status]: successOf(route),
    ...(takesDryRun(route) && {
      200: { ...successOf({ ...route, response: rehearsal }), description: 'What the deletion would mean.' },
    }),
    ...(route.mayCreate && { 201: successOf(route) }),
    ...(route.pending && { 202: { ...successOf({ ...route, response: route.pending }), description: 'Not yet.' } }),
    ...failures.responsesOf(managementProblems(route), route.problemStatuses),
  },
})

const successOf = (route: ManagementRoute): SchemaObject => {
  const { response, lines, stream, paged } = route
  const names = [
    'Logto-Core-Request-Id',
    ...(paged ? ['Total-Number', 'Link'] : []),
    ...(parametersOf(route.query, 'query').some(({ name }) => name === 'enableCap') ? ['Total-Number-Is-Capped'] : []),
    ...(takesKey(route) ? ['Idempotent-Replayed'] : []),
    ...(hasVersion(route) || takesIfMatch(route) ? ['ETag'] : []),
  ]
  return {
    description: response || lines || stream ? 'What was asked for, as it is now.' : 'Done.',
    headers: referencesTo('headers', names),
    ...(response && { content: { 'application/json': { schema: answers.schemaOf(response) } } }),
    // Each line is a value of this schema.
    ...(stream && { content: { 'text/event-stream': { schema: answers.schemaOf(stream) } } }),
    ...(lines && { content: { 'application/x-ndjson': { schema: answers.schemaOf(lines) } } }),
  }
}

/** `/organization-roles/:id` belongs to "Organization roles". */
const tagOf = ({ path }: ManagementRoute): string => {
  const [, room = ''] = path.split('/')
  return capitalized(room.replaceAll('-', ' '))
}

const tagsOf = (routes: readonly ManagementRoute[]) =>
  [...new Set([...routes.map(tagOf), 'Service', 'Events'])].map((name) => ({ name }))
