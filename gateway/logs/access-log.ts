import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { LogSettings } from '../config/settings/logs.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { UnparsedRequest } from '../request/unparsed.ts'
import { type LogOutput, openLog } from './output.ts'

/**
 * One short JSON line a request: who asked for what and what came of it. No query, no header that could hold a
 * credential.
 */
export interface AccessLog extends Pick<LogOutput, 'reopen' | 'close'> {
  write(context: RequestContext): void
  writeUnparsed(unparsed: UnparsedRequest): void
}

export const createAccessLog = (options: { settings: LogSettings; logger: Logger; metrics: Metrics }): AccessLog => {
  const { write, reopen, close } = openLog({ name: 'access', ...options })
  return {
    reopen,
    close,
    write: (context) => write(JSON.stringify(entryOf(context))),
    writeUnparsed: ({ id, status, code, address }) =>
      write(JSON.stringify({ time: new Date().toISOString(), request_id: id, client_ip: address, status, code })),
  }
}

/** In characters: clients choose it. */
const longestUserAgent = 256

const entryOf = ({
  id,
  incoming,
  checked,
  request,
  route,
  principal,
  upstreamRequest,
  response,
  error,
  startedAt,
}: RequestContext) => ({
  time: new Date().toISOString(),
  request_id: id,
  client_ip: request?.clientIp,
  method: request?.method,
  host: request?.host,
  path: request?.path,
  protocol: checked ? 'ext_authz' : `HTTP/${incoming.httpVersion}`,
  // 0: the client left before an answer.
  status: response.headersSent ? response.statusCode : 0,
  code: error?.code,
  duration_ms: Math.round((performance.now() - startedAt) * 100) / 100,
  route: route?.id,
  target: upstreamRequest?.target,
  retries: upstreamRequest?.retries,
  sub: principal?.input.subject?.id,
  act: principal?.input.actor?.id,
  client_id: principal?.input.client?.id,
  user_agent: incoming.headers['user-agent']?.slice(0, longestUserAgent),
})
