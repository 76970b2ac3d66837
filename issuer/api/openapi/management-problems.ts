import type { ProblemCode } from '../../base/errors/problems.ts'
import { isSearchParameter } from '../../base/lists/search.ts'
import { type Route, takesKey } from '../../base/route.ts'
import { takesIfMatch } from '../../base/versions/entities.ts'
import { ofBodies } from './bodies.ts'
import { inputSchema } from './json-schema.ts'

/** The problems of every operation, and of those with pages, bodies and idempotency keys. */
const everywhere: readonly ProblemCode[] = [
  'guard.invalid_input',
  'auth.authorization_header_missing',
  'auth.authorization_token_type_not_supported',
  'auth.unauthorized',
  'auth.jwt_sub_missing',
  'auth.forbidden',
  'auth.session_not_allowed',
  'rate_limit.exceeded',
  'server.error',
  'server.unavailable',
]
const ofSearches: readonly ProblemCode[] = ['request.invalid_input']
const ofPages: readonly ProblemCode[] = ['guard.invalid_pagination']
const ofConditions: readonly ProblemCode[] = ['entity.version_mismatch']
const ofKeys: readonly ProblemCode[] = ['idempotency.in_progress', 'idempotency.mismatch']

export const managementProblems = (route: Route): ProblemCode[] => [
  ...new Set([
    ...everywhere,
    ...(isSearched(route) ? ofSearches : []),
    ...(route.paged ? ofPages : []),
    ...(route.body ? ofBodies : []),
    ...(takesKey(route) ? ofKeys : []),
    ...(takesIfMatch(route) ? ofConditions : []),
    ...(route.problems ?? []),
  ]),
]

const isSearched = ({ query }: Route): boolean =>
  query !== undefined && Object.keys(inputSchema(query)['properties'] ?? {}).some(isSearchParameter)

/** Those that many operations have alike. */
export const sharedManagementProblems: readonly ProblemCode[] = [...everywhere, ...ofBodies]
