import { AnswerTooLarge } from '../../../platform/http/bounded-client.ts'
import {
  createOutboundAgent,
  createTargetPolicy,
  type Resolve,
  TargetNotAllowed,
} from '../../../platform/http/outbound.ts'
import { readWhole } from '../../../platform/http/read-whole.ts'
import { FederationError } from './federation-error.ts'

export interface ProviderRequest {
  method?: string
  headers?: Record<string, string>
  /** Null, as absent: none. */
  body?: unknown
}

/** Throws `FederationError` when there is no whole answer. A redirect is an answer. */
export type ProviderFetch = (url: string, request?: ProviderRequest) => Promise<Response>

/** Requests to identity providers: where the address guard allows it at the connect, bounded in time and size. */
export interface ProviderRequests {
  /** Connections of a connector's own. */
  of(connectorId: string): ProviderFetch
  /** Why an address may not be asked, for people; undefined when it may. */
  refusal(url: string): Promise<string | undefined>
  close(): Promise<void>
}

export interface ProviderRequestOptions {
  /** CIDRs that may be reached although they are not public. Plain http goes to them alone. */
  allowedNetworks: readonly string[]
  /** Of a request until its answer is read, in ms. Default 5 000. */
  timeoutMs?: number
  resolve?: Resolve
}

/** Microsoft's largest documents take a tenth of it. */
const maxAnswerBytes = 262_144

export const createProviderRequests = (options: ProviderRequestOptions): ProviderRequests => {
  const { allowedNetworks, timeoutMs = 5_000, resolve } = options
  const policy = createTargetPolicy({ allowedNetworks, allowHttp: 'allowed_networks', resolve })
  const agent = createOutboundAgent({
    policy,
    connectTimeoutMs: timeoutMs,
    connections: 8,
    // Framing may take as much again.
    maxBodyBytes: 2 * maxAnswerBytes,
  })

  return {
    of: (connectorId) => async (text, request) => {
      const url = new URL(text)
      const refused = policy.refusalOfUrl(url)
      if (refused !== undefined) throw new FederationError('target_not_allowed', refused)
      // One clock for all of it: undici's own start over with every byte.
      const signal = AbortSignal.timeout(timeoutMs)
      try {
        const answer = await agent.dispatcherOf(connectorId).request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: (request?.method ?? 'GET') as 'GET' | 'POST',
          // GitHub refuses requests without a name.
          headers: { accept: 'application/json', 'user-agent': 'surrogate', ...request?.headers },
          body: request?.body == null ? null : String(request.body),
          signal,
        })
        const body = await readWhole(answer.body, maxAnswerBytes, () => tooLarge)
        return new Response(body.length === 0 ? null : new Uint8Array(body), {
          status: answer.statusCode,
          headers: { 'content-type': [answer.headers['content-type'] ?? ''].flat()[0]! },
        })
      } catch (error) {
        throw faultOf(error, url.host, signal.aborted ? timeoutMs : undefined)
      }
    },
    refusal: (url) => policy.refusal(url),
    close: () => agent.close(),
  }
}

const tooLarge = new Error(`The answer is larger than ${maxAnswerBytes} bytes.`)

const faultOf = (error: unknown, host: string, lateAfterMs: number | undefined): FederationError => {
  if (error instanceof TargetNotAllowed) return new FederationError('target_not_allowed', error.message)
  if (error === tooLarge || error instanceof AnswerTooLarge)
    return new FederationError('unavailable', `${host}: ${(error as Error).message}`)
  if (lateAfterMs !== undefined)
    return new FederationError('unavailable', `${host} gave no whole answer within ${lateAfterMs} ms.`)
  return new FederationError('unavailable', `${host} could not be reached.`, { cause: error })
}
