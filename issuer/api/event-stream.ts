import type { ServerResponse } from 'node:http'
import type { RouteResult, ServerSentEvent } from '../base/route.ts'
import { drained } from './json-lines.ts'

/** How long a caller may read nothing, in ms. */
const patienceMs = 30_000

/**
 * Answers with server-sent events (HTML Standard §9.2), as fast as the caller reads and no faster, until they end or
 * the caller leaves.
 */
export const sendEventStream = async (
  response: ServerResponse,
  events: NonNullable<RouteResult['events']>,
): Promise<void> => {
  const left = new AbortController()
  response.on('close', () => left.abort())
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8')
  // Proxies such as nginx would keep it until there is more.
  response.setHeader('X-Accel-Buffering', 'no')
  response.flushHeaders()
  for await (const event of events(left.signal)) {
    if (response.destroyed) break
    if (response.write(textOf(event))) continue
    const timer = setTimeout(() => response.destroy(), patienceMs)
    await drained(response)
    clearTimeout(timer)
  }
  response.end()
}

/** Without an event a comment, which only keeps the connection open. JSON has no line breaks. */
const textOf = (event: ServerSentEvent | undefined): string => {
  if (event === undefined) return ':\n\n'
  const id = event.id === undefined ? '' : `id: ${event.id}\n`
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
}
