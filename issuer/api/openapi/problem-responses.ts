import { statusText } from '../../../platform/problem.ts'
import { type ProblemCode, problems } from '../../base/errors/problems.ts'
import { isSearchParameter } from '../../base/lists/search.ts'
import type { Route } from '../../base/route.ts'
import { takesKey } from '../../base/route.ts'
import { inputSchema, type SchemaObject } from './json-schema.ts'

/** The problems of every operation, and of those with pages, bodies and idempotency keys. */
const everywhere: readonly ProblemCode[] = [
  'guard.invalid_input',
  'auth.authorization_header_missing',
  'auth.authorization_token_type_not_supported',
  'auth.unauthorized',
  'auth.jwt_sub_missing',
  'auth.forbidden',
  'rate_limit.exceeded',
  'server.error',
  'server.unavailable',
]
const ofSearches: readonly ProblemCode[] = ['request.invalid_input']
const ofPages: readonly ProblemCode[] = ['guard.invalid_pagination']
const ofBodies: readonly ProblemCode[] = ['guard.invalid_json', 'guard.body_too_large', 'guard.unsupported_media_type']
const ofKeys: readonly ProblemCode[] = ['idempotency.in_progress', 'idempotency.mismatch']

const problemsOf = (route: Route): ProblemCode[] => [
  ...new Set([
    ...everywhere,
    ...(isSearched(route) ? ofSearches : []),
    ...(route.paged ? ofPages : []),
    ...(route.body ? ofBodies : []),
    ...(takesKey(route) ? ofKeys : []),
    ...(route.problems ?? []),
  ]),
]

const isSearched = ({ query }: Route): boolean =>
  query !== undefined && Object.keys(inputSchema(query)['properties'] ?? {}).some(isSearchParameter)

export const problemSchema: SchemaObject = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'string', description: 'Stable: act on this.' },
    message: { type: 'string', description: 'Belongs to the code.' },
    details: { type: 'string', description: 'What was wrong with this request.' },
    data: { description: 'What a program can use to put it right: `issues`, `id`, `ids`, `scopes`, …' },
  },
}

const headersOf: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  409: ['Retry-After'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** The answers of a route that are no success, by status. What is the same everywhere is a component. */
export const problemResponses = (route: Route): Record<string, SchemaObject> => {
  const byStatus = Map.groupBy(problemsOf(route), (code) => route.problemStatuses?.[code] ?? problems[code][0])
  return Object.fromEntries(
    [...byStatus]
      .sort(([one], [other]) => one - other)
      .map(([status, codes]) => [
        String(status),
        sharedNames.get(codes.join()) === undefined
          ? responseOf(status, codes)
          : { $ref: `#/components/responses/${sharedNames.get(codes.join())}` },
      ]),
  )
}

const responseOf = (status: number, codes: readonly ProblemCode[]): SchemaObject => ({
  description: codes.map((code) => `\`${code}\`: ${problems[code][1]}`).join('\n\n'),
  headers: Object.fromEntries(
    ['Logto-Core-Request-Id', ...(headersOf[status] ?? [])].map((name) => [
      name,
      { $ref: `#/components/headers/${name}` },
    ]),
  ),
  content: {
    'application/json': {
      schema: { $ref: '#/components/schemas/Problem', properties: { code: { enum: codes } } },
    },
  },
})

const shared = new Map(
  [...Map.groupBy([...everywhere, ...ofBodies], (code) => problems[code][0])].map(([status, codes]) => {
    const name = statusText(status).replaceAll(/\W/g, '')
    return [name, { codes, response: responseOf(status, codes) }]
  }),
)
const sharedNames = new Map([...shared].map(([name, { codes }]) => [codes.join(), name]))

export const sharedResponses = (): Record<string, SchemaObject> =>
  Object.fromEntries([...shared].map(([name, { response }]) => [name, response]))
