import { z } from 'zod'
import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { type Route, route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import { createCustomClaims } from '../../claims/claims.ts'
import type { ClaimsScriptStore } from '../../claims/claims-script-store.ts'
import type { ClaimsSandbox } from '../../claims/sandbox/sandbox.ts'
import { createPreviewTokens } from './preview.ts'

export interface TokenPreviewDependencies {
  database: Pick<Database, 'query'>
  claimsScripts: ClaimsScriptStore
  sandbox: Pick<ClaimsSandbox, 'run'>
  /** The `iss` of tokens. */
  issuer: string
  logger: Logger
  now(): Date
}

const preview = z.strictObject({
  audience: z.string().describe('The `aud`.'),
  claims: jsonObject.describe('Of the token; absent where there would be none.').optional(),
  refused: z
    .strictObject({ error: z.string(), reason: z.string().optional(), message: z.string() })
    .describe('What the token endpoint would answer instead.')
    .optional(),
})

export const tokenPreviewRoutes = (dependencies: TokenPreviewDependencies): Route[] => {
  const { database, claimsScripts, sandbox, logger } = dependencies
  const claims = createCustomClaims({
    ...{ database, store: claimsScripts, logger },
    // Nobody waits for a token: the calls take their turn behind those of tokens, and no client answers for them.
    sandbox: { run: (call) => sandbox.run({ ...call, owner: `trial ${call.owner}`, isTrial: true }) },
    // They are not counted among the tokens that were issued.
    metrics: createMetrics(),
  })
  const previewTokens = createPreviewTokens({ ...dependencies, claims })
  return [
    route({
      method: 'GET',
      path: '/applications/:id/token-previews',
      operationId: 'previewTokens',
      summary: 'Answers the claims of the tokens that an application would get now, for a user or for itself.',
      scope: 'rbac',
      // Scripts may say of people what their records do not.
      secret: true,
      params: z.object({ id }),
      query: z.object({
        userId: id.describe('Who would sign in. Default: the application asks for itself.').optional(),
        organizationId: id.describe('Where the tokens would count.').optional(),
        resource: z.string().min(1).max(2_048).describe('An indicator. Default: every API resource.').optional(),
      }),
      status: 200,
      response: z.strictObject({
        tokens: z.array(preview),
        more: z.boolean().describe('There are more resources than are answered at once.'),
      }),
      problems: ['entity.not_exists_with_id'],
      async handle({ params, query, request }) {
        return { body: await previewTokens({ applicationId: params.id, ...query }, request) }
      },
    }),
  ]
}
