import { z } from 'zod'
import { type JsonFetcher, UnexpectedStatus } from './fetch-json.ts'

const endpoint = z.url({ protocol: /^https?$/ })
const metadata = z.object({ issuer: z.string() })

/** OpenID Connect Discovery §4 appends the well-known path, RFC 8414 §3.1 inserts it before the issuer's own path. */
const documentUrls = (issuer: string): string[] => {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/**
 * One address of an issuer's metadata. Throws when no document is found, when it is of another issuer (RFC 8414 §3.3:
 * must be identical) or does not have the member, or when an `https` issuer names an address on plain `http`.
 */
const discover = async (issuer: string, member: string, fetcher: JsonFetcher): Promise<string> => {
  let missing: unknown
  for (const url of documentUrls(issuer)) {
    let body: unknown
    try {
      body = (await fetcher.get(url)).body
    } catch (error) {
      if (!(error instanceof UnexpectedStatus && error.status === 404)) throw error
      missing = error
      continue
    }
    const document = metadata.safeParse(body)
    if (!document.success) throw new Error(`${url} is no discovery document`)
    const found = endpoint.safeParse((body as Record<string, unknown>)[member])
    if (!found.success) throw new Error(`${url} is no discovery document with ${member}`)
    if (document.data.issuer !== issuer) throw new Error(`${url} is the document of another issuer`)
    if (issuer.startsWith('https:') && !found.data.startsWith('https:')) throw new Error(`${member} is not https`)
    return found.data
  }
  throw missing
}

/** Where an issuer publishes its keys. */
export const discoverJwksUri = (issuer: string, fetcher: JsonFetcher): Promise<string> =>
  discover(issuer, 'jwks_uri', fetcher)

/** Where an issuer tells about tokens (RFC 8414 §2). */
export const discoverIntrospectionEndpoint = (issuer: string, fetcher: JsonFetcher): Promise<string> =>
  discover(issuer, 'introspection_endpoint', fetcher)
