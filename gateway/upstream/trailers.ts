import type { OutgoingHttpHeaders } from 'node:http'
import type { RequestContext } from '../request/request-context.ts'

/**
 * RFC 9110 §6.5.1: fields that frame, route, authenticate or control caching are not allowed as trailers; a recipient
 * may merge them into the head. The gateway's own fields are not allowed either.
 */
const neverTrailing =
  /^(?:content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|host|via|expect|range|max-forwards|authorization|www-authenticate|proxy-.*|set-cookie2?|clear-site-data|cookie|cache-control|expires|date|location|retry-after|vary|age|pragma|warning|access-control-.*|strict-transport-security|x-request-id|x-auth-.*|ratelimit.*)$/

/**
 * The trailer fields of an upstream's answer that go to a client that asked for some (`TE: trailers`); undefined: none.
 */
export const answerTrailers = (
  { incoming }: RequestContext,
  trailers: Readonly<Record<string, string | string[] | undefined>>,
): OutgoingHttpHeaders | undefined => {
  if (!wantsTrailers(incoming.headers['te'] as string | undefined)) return undefined
  const passed = Object.entries(trailers).filter(([name]) => !neverTrailing.test(name))
  return passed.length > 0 ? Object.fromEntries(passed) : undefined
}

const wantsTrailers = (te: string | undefined): boolean =>
  te?.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers') ?? false
