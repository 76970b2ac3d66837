import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Where a request comes from, as the audit trail and events say it. */
export interface RequestOrigin {
  ip: string
  userAgent: string | undefined
}

/**
 * The address a request comes from: the peer's, or, when the peer is a trusted proxy, the first hop of
 * `X-Forwarded-For` from the right that is not one. `trustedProxies` are addresses or CIDR networks; anything else in
 * the list throws `TypeError`.
 */
export const createClientAddress = (trustedProxies: readonly string[]): ((request: IncomingMessage) => string) => {
  const trusted = new BlockList()
  for (const proxy of trustedProxies) {
    const [address = '', prefix] = proxy.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) throw new TypeError(`${proxy} is neither an address nor a network.`)
    trusted.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  const isTrusted = (address: string) => {
    const family = isIP(address)
    return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  return (request) => {
    // A socket that listens on IPv6 shows IPv4 peers in mapped form.
    const peer = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '')
    if (trustedProxies.length === 0 || !isTrusted(peer)) return peer
    const hops = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
    const untrusted = hops.map((hop) => hop.trim()).findLast((hop) => !isTrusted(hop))
    return untrusted !== undefined && isIP(untrusted) !== 0 ? untrusted : peer
  }
}
