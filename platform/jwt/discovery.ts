import { z } from 'zod'
import { type JsonFetcher, UnexpectedStatus } from './fetch-json.ts'

const metadata = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) })

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
 * Where an issuer publishes its keys. Throws when no document is found, when it is of another issuer (RFC 8414 §3.3:
 * must be identical), or when an `https` issuer names keys on plain `http`.
 */
export const discoverJwksUri = async (issuer: string, fetcher: JsonFetcher): Promise<string> => {
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
    if (document.data.issuer !== issuer) throw new Error(`${url} is the document of another issuer`)
    const { jwks_uri } = document.data
    if (issuer.startsWith('https:') && !jwks_uri.startsWith('https:')) throw new Error('jwks_uri is not https')
    return jwks_uri
  }
  throw missing
}
