import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { type Agent, buildConnector, type Client, type Dispatcher } from 'undici'
import type { z } from 'zod'
import { setting } from '../config.ts'
import { type AddressGuard, createAddressGuard, parseNetwork } from './address-guard.ts'
import { BoundedClient, createBoundedAgent } from './bounded-client.ts'

/**
 * Requests to URLs that customers wrote. What may be reached is checked twice: when a URL is registered (`refusal`)
 * and, because names change their addresses, again at every connect (`createOutboundAgent`).
 */
export interface TargetPolicy {
  /**
   * Why this URL may not be a target, for people; undefined when it may. A name that does not resolve now is accepted.
   */
  refusal(url: string): Promise<string | undefined>
  /** The part that needs no name resolution: scheme, userinfo, port, IP literals. */
  refusalOfUrl(url: URL): string | undefined
  /**
   * The allowed ones among the addresses of a name, for a URL of this scheme. Throws `TargetNotAllowed` when it has
   * addresses but none is allowed.
   */
  resolve(hostname: string, protocol?: string): Promise<LookupAddress[]>
}

/**
 * Resolves a name to all its addresses. Default: the system's resolver (`/etc/hosts` included), as a connection would.
 */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>

export interface TargetPolicyOptions {
  /** CIDRs that are allowed although they are not public. Default none. */
  allowedNetworks?: readonly string[] | undefined
  /**
   * Plain `http:` is allowed too: to every address that is, or only to those in `allowedNetworks`, which the operator
   * knows. Default false.
   */
  allowHttp?: boolean | 'allowed_networks' | undefined
  resolve?: Resolve | undefined
}

/** The settings behind `TargetPolicyOptions`, the same for whoever registers a URL and whoever sends to it. */
export const webhookTargetSettings = {
  /** CIDRs, comma-separated. Default none: public addresses only. */
  WEBHOOK_ALLOWED_NETWORKS: setting
    .list()
    .refine((list) => list.every((item) => parseNetwork(item)), 'must be CIDRs such as 10.0.0.0/8, separated by commas')
    .default([]),
  /** Default false: `https` only. */
  WEBHOOK_ALLOW_HTTP: setting.flag().default(false),
} satisfies z.ZodRawShape

export class TargetNotAllowed extends Error {
  override readonly name = 'TargetNotAllowed'
  readonly code = 'TARGET_NOT_ALLOWED'
}

// Ports of databases, brokers, orchestrators and our own admin listeners: nothing there takes webhooks.
const infrastructurePorts = new Set([
  1433, 1521, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389, 4222, 5432, 5433, 5672, 5984, 5985, 5986, 6222,
  6379, 6380, 6443, 7001, 8222, 8500, 8501, 8600, 9042, 9092, 9093, 9200, 9300, 9301, 9302, 10250, 10255, 10256, 11211,
  15672, 26257, 26379, 27017, 27018, 27019, 50070, 61616,
])
const registrationLookupMs = 3_000

const systemResolve: Resolve = (hostname) => dns.lookup(hostname, { all: true, verbatim: true })
const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, '')

export const createTargetPolicy = (options: TargetPolicyOptions = {}): TargetPolicy => {
  const { allowHttp = false, resolve = systemResolve } = options
  const guard: AddressGuard = createAddressGuard({ allowedNetworks: options.allowedNetworks ?? [] })

  const refusalOfAddress = (address: string, protocol: string): string | undefined =>
    guard.refusal(address) ??
    (protocol === 'http:' && allowHttp === 'allowed_networks' && !guard.isNamed(address)
      ? 'it is not in a network to which plain http may go'
      : undefined)

  const refusalOfUrl = (url: URL): string | undefined => {
    if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
      return allowHttp ? 'The URL must start with https:// or http://.' : 'The URL must start with https://.'
    if (url.username !== '' || url.password !== '') return 'The URL must not contain a user name or password.'
    if (url.hostname === '') return 'The URL must name a host.'
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    if ((port < 1024 && port !== 80 && port !== 443) || infrastructurePorts.has(port))
      return `Port ${port} is not allowed.`
    const hostname = bare(url.hostname)
    const refused = isIP(hostname) === 0 ? undefined : refusalOfAddress(hostname, url.protocol)
    return refused && `The address ${hostname} is not allowed: ${refused}.`
  }

  const allowedOf = (hostname: string, addresses: LookupAddress[], protocol: string) => {
    const allowed = addresses.filter(({ address }) => refusalOfAddress(address, protocol) === undefined)
    if (allowed.length > 0 || addresses.length === 0) return allowed
    throw new TargetNotAllowed(
      `The host ${hostname} has no address that is allowed: ${refusalOfAddress(addresses[0]!.address, protocol)}.`,
    )
  }

  const policy: TargetPolicy = {
    refusalOfUrl,
    resolve: async (hostname, protocol = 'https:') => allowedOf(hostname, await resolve(hostname), protocol),
    async refusal(text) {
      if (!URL.canParse(text)) return 'The URL cannot be read.'
      const url = new URL(text)
      const refused = refusalOfUrl(url)
      if (refused !== undefined || isIP(bare(url.hostname)) !== 0) return refused
      const none: LookupAddress[] = []
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<LookupAddress[]>((done) => {
        timer = setTimeout(done, registrationLookupMs, none)
      })
      try {
        allowedOf(url.hostname, await Promise.race([resolve(url.hostname).catch(() => none), late]), url.protocol)
        return undefined
      } catch (error) {
        return (error as TargetNotAllowed).message
      } finally {
        clearTimeout(timer)
      }
    },
  }
  return policy
}

export interface OutboundAgentOptions {
  policy: TargetPolicy
  /** Until the connection (TLS included) stands, in ms. Default 5 000. */
  connectTimeoutMs?: number
  /** Connections of one owner to one origin. Default 4. */
  connections?: number
  /** Of an answer's body with its framing (platform/http/bounded-client.ts). */
  maxBodyBytes: number
}

// A pooled socket outlives the name resolution that allowed it; after this long its name is resolved and checked anew.
const socketLifeMs = 300_000

export interface OutboundAgent {
  /**
   * Connections of an owner's own, kept and used again: what others have under way to the same host does not hold it
   * up. With `onConnection` among the options of `dispatch` the caller is told what carries its request.
   */
  dispatcherOf(owner: string): Dispatcher
  /** A connection that nobody has used. To be destroyed by the caller. */
  freshClient(origin: string): Client
  close(): Promise<void>
}

/** Owners with connections, at most; the one that was quiet for longest gives up its own. */
const keptOwners = 1_000

/**
 * A keep-alive HTTP/1.1 client that connects only to addresses the policy allows, whatever the name resolves to by
 * then.
 */
export const createOutboundAgent = ({
  policy,
  connectTimeoutMs = 5_000,
  connections = 4,
  maxBodyBytes,
}: OutboundAgentOptions): OutboundAgent => {
  // Called for names only (node:net does not look literals up), and with `all` since Node tries both families.
  const lookupFor =
    (protocol: string): LookupFunction =>
    (hostname, options, callback) => {
      policy.resolve(hostname, protocol).then(
        (addresses) => {
          const fitting = options.family ? addresses.filter(({ family }) => family === options.family) : addresses
          const first = fitting[0]
          if (first === undefined) {
            const missing = Object.assign(new Error(`The name ${hostname} has no address.`), { code: 'ENOTFOUND' })
            callback(missing, options.all ? [] : '', 0)
          } else if (options.all) callback(null, fitting)
          else callback(null, first.address, first.family)
        },
        (error: NodeJS.ErrnoException) => callback(error, options.all ? [] : '', 0),
      )
    }
  const connectorFor = (protocol: string) =>
    buildConnector({
      lookup: lookupFor(protocol),
      timeout: connectTimeoutMs,
      autoSelectFamily: true,
      allowH2: false,
    })
  const [overTls, inTheClear] = [connectorFor('https:'), connectorFor('http:')]
  const connect: buildConnector.connector = (options, callback) => {
    const host = options.hostname.includes(':') ? `[${bare(options.hostname)}]` : options.hostname
    const url = new URL(`${options.protocol}//${host}${options.port ? `:${options.port}` : ''}`)
    const refused = policy.refusalOfUrl(url)
    if (refused !== undefined) callback(new TargetNotAllowed(refused), null)
    else if (url.protocol === 'https:') overTls(options, callback)
    else inTheClear(options, callback)
  }

  const bounds = { maxBodyBytes, keepAliveTimeout: 30_000, keepAliveMaxTimeout: 120_000, connect }
  const agents = new Map<string, Agent>()
  return {
    dispatcherOf(owner) {
      const agent = agents.get(owner) ?? createBoundedAgent({ ...bounds, connections, clientTtl: socketLifeMs })
      // The last in the map is the one that was used last.
      agents.delete(owner)
      agents.set(owner, agent)
      const [quietest] = agents
      if (agents.size > keptOwners && quietest) {
        agents.delete(quietest[0])
        void quietest[1].close()
      }
      return agent
    },
    freshClient: (origin) => new BoundedClient(origin, bounds),
    // Not close(), which would wait for receivers.
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()))
    },
  }
}
