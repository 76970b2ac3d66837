import type { IncomingMessage } from 'node:http'

/**
 * Whether a page of another site made the browser send this. Then the browser kept our cookies back (SameSite=Lax), so
 * a person who has signed in would look like a stranger. Programs that are no browsers send neither header.
 */
export const isFromAnotherSite = ({ headers }: Pick<IncomingMessage, 'headers'>, origin: string): boolean => {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'cross-site' || site === 'same-site'
  return headers.origin !== undefined && headers.origin !== origin
}
