import { z } from 'zod'
import { isLoopbackUri } from '../../base/redirect-uri.ts'

/** Addresses that operators set. A browser only ever follows http, so nothing that is script can be one of them. */

const maxLength = 2_048

const parsed = (text: string): URL | undefined => {
  const url = URL.parse(text)
  return url !== null && url.username === '' && url.password === '' ? url : undefined
}

const isWeb = (text: string) => ['https:', 'http:'].includes(parsed(text)?.protocol ?? '')
const isSafe = (text: string) => parsed(text)?.protocol === 'https:' || isLoopbackUri(text)

/** Where a link leads. */
export const webLink = z.string().max(maxLength).refine(isWeb, 'must be an http or https address')

/** Where a browser is sent, or what a page shows: https, or this machine. */
export const safeLink = z.string().max(maxLength).refine(isSafe, 'must be an https address, or http of this machine')

/** A picture that was uploaded. */
export const assetPath = /^\/assets\/[0-9a-f]{64}\.(png|jpg|webp|gif|svg)$/

/** A picture: one of ours, or from https. */
export const pictureLink = z
  .string()
  .max(maxLength)
  .refine(
    (text) => assetPath.test(text) || isSafe(text),
    'must be the path of an uploaded picture, or an https address',
  )

/**
 * Whether cookies of `base` reach a page at `link` (Lax): the same host, a subdomain, or a neighbour under the same
 * domain. Without the list of public suffixes this is as near as one can tell; browsers have the last word.
 */
export const isSameSite = (link: string, base: string): boolean => {
  const [page, ours] = [new URL(link), new URL(base)]
  if (page.hostname === ours.hostname) return page.protocol === ours.protocol
  if (page.protocol !== ours.protocol || /^[\d.]+$|^\[/.test(ours.hostname)) return false
  const parent = ours.hostname.split('.').slice(1).join('.')
  const domain = parent.includes('.') ? parent : ours.hostname
  return page.hostname === domain || page.hostname.endsWith(`.${domain}`)
}
