import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../platform/database/database.ts'
import { AppError } from '../../platform/problem.ts'
import { authorize } from '../base/authorization.ts'
import { problem } from '../base/errors/problems.ts'
import { parseInput } from '../base/parse-input.ts'
import type { ConcernedEntity, ManagementRoute, RouteContext, RouteResult } from '../base/route.ts'
import { hasVersion, takesIfMatch, versionedAt } from '../base/versions/entities.ts'
import { etagOf, readIfMatch } from '../base/versions/if-match.ts'
import { findVersion } from '../base/versions/version-store.ts'

type Context = RouteContext<unknown, unknown, unknown>
type Addressed = Pick<IncomingMessage, 'headers'> & { params: Readonly<Record<string, string>> }

/**
 * Entities have their version as ETag, and are changed under `If-Match` (RFC 9110 §13.1.1): by `versions/entities.ts`,
 * which says of what each route is about.
 */
export const createConditional = (routes: readonly ManagementRoute[], query: Query) => {
  const readers = new Map(routes.filter(({ method }) => method === 'GET').map((one) => [one.path, one]))

  /** What the caller would read now; nothing where that cannot be read, or not by this caller. */
  const currentOf = async (context: Context, path: string): Promise<RouteResult | undefined> => {
    const reader = readers.get(path)
    if (reader === undefined) return undefined
    try {
      authorize(reader, context.caller)
      const defaults = reader.query ? parseInput(reader.query, {}) : {}
      return (await reader.handle({ ...context, query: defaults, page: undefined })) ?? undefined
    } catch (error) {
      if (error instanceof AppError && error.status < 500) return undefined
      throw error
    }
  }

  return (definition: Pick<ManagementRoute, 'method' | 'path'>) => {
    const versioned = takesIfMatch(definition) || hasVersion(definition) ? versionedAt(definition.path) : undefined

    return {
      /** What a request is to change, and under which condition. */
      concerned(request: Addressed): ConcernedEntity | undefined {
        if (versioned === undefined || !takesIfMatch(definition)) return undefined
        const header = request.headers['if-match']
        return { ...versioned.entity(request.params), ifMatch: header === undefined ? undefined : readIfMatch(header) }
      },

      /** Runs it and says the version. A record that is changed while it is read has the version of before. */
      async run(context: Context, response: ServerResponse, work: () => Promise<RouteResult | undefined>) {
        const { entity } = context
        if (versioned === undefined) return work()
        if (entity === undefined) {
          const version = await findVersion(query, versioned.entity(context.request.params))
          const result = await work()
          response.setHeader('ETag', etagOf(version))
          return result
        }
        try {
          const result = await work()
          const isGone = definition.method === 'DELETE' && versioned.isItself
          if (entity.version !== undefined && !isGone) response.setHeader('ETag', etagOf(entity.version))
          return result
        } catch (error) {
          if (!(error instanceof AppError) || error.code !== 'entity.version_mismatch') throw error
          const version = await findVersion(query, entity)
          const current = await currentOf(context, versioned.path)
          throw problem('entity.version_mismatch', {
            headers: { ETag: etagOf(version) },
            ...(current?.body !== undefined && { data: { current: current.body } }),
          })
        }
      },
    }
  }
}
