import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Where a request comes from, as the audit trail and events say it. */
export interface RequestOrigin {
  ip: string
  userAgent: string | undefined
}

/** Proxies are few, and looking through the networks takes longer than all else here. */
const maxRemembered = 1_000

/** Who is believed about the requests that they pass on. */
interface TrustedProxies {
  has(address: string): boolean
}

/** `proxies` are addresses or CIDR networks; throws `TypeError` for anything else. */
const trustedProxiesOf = (proxies: readonly string[]): TrustedProxies => {
  const trusted = new BlockList()
  for (const proxy of proxies) {
    const [address = '', prefix] = proxy.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) throw new TypeError(`${proxy} is neither an address nor a network.`)
    trusted.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  const remembered = new Map<string, boolean>()
  return {
    has(address) {
      const known = remembered.get(address)
      if (known !== undefined) return known
      const family = isIP(address)
      // A header may say anything.
      if (family === 0) return false
      const isTrusted = trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
      if (remembered.size >= maxRemembered) remembered.clear()
      remembered.set(address, isTrusted)
      return isTrusted
    },
  }
}

// A socket that listens on IPv6 shows IPv4 peers in mapped form.
const peerOf = (request: IncomingMessage): string => (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '')

/** Whether a request came through one of these proxies, so that what its headers tell of the client is believed. */
export const createIsFromProxy = (proxies: readonly string[]): ((request: IncomingMessage) => boolean) => {
  const trusted = trustedProxiesOf(proxies)
  return (request) => trusted.has(peerOf(request))
}

/**
 * The address a request comes from: the peer's, or, when the peer is a trusted proxy, the first hop of
 * `X-Forwarded-For` from the right that is not one. Throws `TypeError` for what is neither an address nor a network.
 */
export const createClientAddress = (proxies: readonly string[]): ((request: IncomingMessage) => string) => {
  const trusted = trustedProxiesOf(proxies)
  return (request) => {
    const peer = peerOf(request)
    if (proxies.length === 0 || !trusted.has(peer)) return peer
    const hops = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
    const untrusted = hops.map((hop) => hop.trim()).findLast((hop) => !trusted.has(hop))
    return untrusted !== undefined && isIP(untrusted) !== 0 ? untrusted : peer
  }
}
