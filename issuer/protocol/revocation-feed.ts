import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { Logger } from '../../platform/logger.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { RevocationFeed } from '../tokens/revocations/feed.ts'
import { sendError, sendJson } from './answers.ts'
import type { AuthenticateRequest } from './clients/registered-client.ts'
import { refuseParametersInUrl } from './requests/parameters.ts'

const wholeNumber = (most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().max(most))

const feedQuery = z.object({
  /** The `cursor` of the last answer. Absent: from the first entry that has not expired. */
  since: wholeNumber(Number.MAX_SAFE_INTEGER).default(0),
  /** How long to wait for an entry when there is none yet, in seconds. */
  wait: wholeNumber(60).default(0),
})

const readQuery = (url: string) => {
  const search = new URLSearchParams(url.split('?', 2)[1] ?? '')
  const names = [...search.keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated !== undefined) throw new OAuthError('invalid_request', 'A parameter is repeated.')
  const parsed = feedQuery.safeParse(Object.fromEntries(search))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new OAuthError('invalid_request', `${issue!.path.join('.')}: ${issue!.message}`)
}

const noParameters: ReadonlyMap<string, string> = new Map()

/**
 * `GET /oidc/revocations?since=<seq>&wait=<s>`: the feed, for clients that hold the management permission
 * `revocations`.
 */
export const createFeedEndpoint =
  ({ feed, authenticate, logger }: { feed: RevocationFeed; authenticate: AuthenticateRequest; logger: Logger }) =>
  async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      refuseParametersInUrl(request.url ?? '')
      // Credentials in the Authorization header: a GET has no other place for them that is not a log.
      const client = await authenticate(request, noParameters)
      if (!client.mayReadRevocations) {
        throw new OAuthError('insufficient_scope', 'The client needs the management permission revocations.')
      }
      const { since, wait } = readQuery(request.url ?? '')
      sendJson(response, 200, await feed.read(since, wait * 1000, gone.signal))
    } catch (cause) {
      sendError(response, cause, logger, requestId)
    }
  }
