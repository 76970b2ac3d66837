import { z } from 'zod'
import { Secret } from '../secret.ts'

/** Where the servers of NATS are and how to log in, as `NATS_URL` says it. */
export interface NatsServers {
  /** `host:port` each; any of them will do. */
  addresses: readonly string[]
  /** `tls://`: refuse a server without TLS. Otherwise TLS is used where a server offers it. */
  tls: boolean
  credentials: { user?: string; password?: Secret; token?: Secret }
}

const protocols = ['nats:', 'tls:']

/**
 * `nats://[user:password@|token@]host[:4222]`, or `tls://…`; several separated by commas, with the same scheme and
 * credentials.
 */
export const natsUrl = () =>
  z.string().transform((value, context): NatsServers => {
    const servers = parseNatsUrl(value)
    if (typeof servers !== 'string') return servers
    context.addIssue(servers)
    return z.NEVER
  })

/** What is wrong with it, in words that do not repeat it: it may hold a password. */
const parseNatsUrl = (value: string): NatsServers | string => {
  const texts = value.split(',').map((text) => text.trim())
  if (!texts.every((text) => URL.canParse(text)))
    return 'must be a URL such as nats://localhost:4222, or several separated by commas'
  const urls = texts.map((text) => new URL(text))
  if (!urls.every(({ protocol, hostname }) => protocols.includes(protocol) && hostname !== ''))
    return 'must start with nats:// or tls:// and name a host'
  if (!urls.every(({ pathname, search, hash }) => ['', '/'].includes(pathname) && search === '' && hash === ''))
    return 'must end after the port'
  if (new Set(urls.map(({ protocol }) => protocol)).size > 1) return 'must have the same scheme for every server'
  const logins = new Set(
    urls.map(({ username, password }) => `${username}:${password}`).filter((login) => login !== ':'),
  )
  if (logins.size > 1) return 'must have the same credentials for every server'

  const login = urls.find((url) => url.username !== '')
  const decoded = login ? decode(login.username, login.password) : {}
  if (decoded === undefined) return 'must have its credentials percent-encoded'
  return {
    addresses: urls.map(({ hostname, port }) => `${hostname}:${port || 4222}`),
    tls: urls.some(({ protocol }) => protocol === 'tls:'),
    credentials: decoded,
  }
}

const decode = (username: string, password: string): NatsServers['credentials'] | undefined => {
  try {
    const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)]
    if (user === '') return {}
    return secret === '' ? { token: new Secret(user) } : { user, password: new Secret(secret) }
  } catch {
    return undefined
  }
}
