import { z } from 'zod'
import { isAllowed, type ManagementScope } from '../../base/authorization.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { type Route, route } from '../../base/route.ts'
import { type SearchedKind, searchRecords } from './search-store.ts'

/** What is searched, and the scope with which it is read. */
const scopes = {
  user: 'users',
  application: 'applications',
  role: 'rbac',
  resource: 'rbac',
  organization: 'organizations',
  hook: 'hooks',
} as const satisfies Record<SearchedKind, ManagementScope>

const kinds = Object.keys(scopes) as [SearchedKind, ...SearchedKind[]]

const query = z.object({
  q: z
    .string()
    .trim()
    .min(3)
    .max(128)
    .meta({ description: 'A text that stands somewhere in a record, in any case, or an id.', examples: ['acme'] }),
  limit: z
    .string()
    .regex(/^(?:[1-9]|1\d|20)$/, 'must be a number from 1 to 20')
    .transform(Number)
    .describe('Of each kind. Default 5.')
    .optional(),
})

export const searchAnswer = z
  .object({
    /** Those with this id, user name or address first. */
    results: z.array(
      z.object({
        kind: z.enum(kinds),
        id: z.string(),
        name: z.string().nullable(),
        /** One fact that tells it from its like: address, type, indicator, description, URL. */
        detail: z.string().nullable(),
        isExact: z.boolean(),
      }),
    ),
    /** The kinds that this caller may read; no others were searched. */
    kinds: z.array(z.enum(kinds)),
  })
  .meta({
    examples: [
      {
        results: [{ kind: 'organization', id: 'o3y7u1i5o9p3', name: 'Acme', detail: null, isExact: false }],
        kinds: ['organization', 'hook'],
      },
    ],
  })

export const searchRoutes = ({ database: { knex } }: Pick<ManagementDependencies, 'database'>): Route[] => [
  route({
    method: 'GET',
    path: '/search',
    operationId: 'search',
    summary: 'Searches users, applications, roles, API resources, organizations and hooks at once, by text or id.',
    scope: [...new Set(Object.values(scopes))],
    query,
    status: 200,
    response: searchAnswer,
    async handle({ query: { q, limit = 5 }, caller }) {
      const readable = kinds.filter((kind) => isAllowed({ method: 'GET', scope: scopes[kind] }, caller))
      return { body: { results: await searchRecords(knex, readable, q, limit), kinds: readable } }
    },
  }),
]
