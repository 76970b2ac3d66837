import type { IncomingMessage } from 'node:http'

/**
 * Whether a form was sent by a page of ours: `Origin` is ours, or it is `null` or missing and the browser vouches for
 * the same origin (Fetch Metadata). What a browser says of another site is a no, whatever else it says.
 */
export const isFromOwnPage = ({ headers }: Pick<IncomingMessage, 'headers'>, ownOrigin: string): boolean => {
  const { origin = 'null' } = headers
  // Always a single value: Node joins none of the two.
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  if (origin === ownOrigin) return true
  return origin === 'null' && site === 'same-origin'
}
