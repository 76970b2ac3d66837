import type { IncomingMessage } from 'node:http'
import { problem } from '../base/errors/problems.ts'
import { isFromOwnPage } from '../base/same-origin.ts'

const isJson = (contentType = ''): boolean => /^application\/json\s*(;|$)/i.test(contentType)

/**
 * Throws 403 `console.cross_site` unless the console's own page may have sent it. What changes something must be JSON,
 * which no form of another site can send. What reads must not be asked for by another site either, so that it cannot
 * even measure how long that takes. `takesForm`: what changes nothing may be a form.
 */
export const requireOwnPage = (
  request: IncomingMessage,
  origin: string,
  { takesForm = false }: { takesForm?: boolean } = {},
): void => {
  const { method = 'GET', headers } = request
  const site = headers['sec-fetch-site']
  const isAllowed =
    method === 'GET' || method === 'HEAD'
      ? site === undefined || site === 'same-origin' || site === 'none'
      : isFromOwnPage(request, origin) && (takesForm || isJson(headers['content-type']))
  if (!isAllowed)
    throw problem('console.cross_site', {
      detail: 'Send application/json from a page of the console; Sec-Fetch-Site or Origin shows where it comes from.',
    })
}
