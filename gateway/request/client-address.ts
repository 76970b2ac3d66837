import { BlockList, isIP } from 'node:net'
import { refuse } from './canonical-target.ts'
import { parseForwarded } from './forwarded.ts'

/** Which proxies are believed about where a request came from, and by which header. */
export interface ProxyTrust {
  trusts(address: string): boolean
  /** The fields that those proxies write. They may pass on the other ones as a client wrote them. */
  readonly forwardedBy: ForwardedBy
}

export type ForwardedBy = 'x-forwarded' | 'forwarded'

const version = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** `::ffff:192.0.2.1` → `192.0.2.1`: what a listener on `::` reports for IPv4. */
export const plainAddress = (address: string | undefined): string =>
  address === undefined ? '' : address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

/** @param networks addresses or CIDRs; none: nobody is trusted. */
export const createProxyTrust = (networks: readonly string[], forwardedBy: ForwardedBy = 'x-forwarded'): ProxyTrust => {
  if (networks.length === 0) return { trusts: () => false, forwardedBy }
  const list = new BlockList()
  for (const network of networks) {
    const [address, prefix] = network.split('/') as [string, string?]
    if (prefix === undefined) list.addAddress(address, version(address))
    else list.addSubnet(address, Number(prefix), version(address))
  }
  return { trusts: (address) => isIP(address) !== 0 && list.check(address, version(address)), forwardedBy }
}

/** `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711` → the address. Undefined: a hidden or unreadable hop. */
const hopAddress = (hop: string): string | undefined => {
  const text = hop.trim()
  const [, bracketed, dotted] = /^(?:\[([0-9A-Fa-f:.]+)\]|(\d[\d.]*\d))(?::\d{1,5})?$/.exec(text) ?? []
  const address = plainAddress(bracketed ?? dotted ?? text)
  return isIP(address) === 0 ? undefined : address
}

/**
 * The addresses that trusted proxies vouch for, client first, peer last. Read from the right up to the first untrusted
 * or unreadable hop; the client may have written what is left of it.
 */
const vouchedFor = (peer: string, hops: readonly (string | undefined)[], trust: ProxyTrust): string[] => {
  const chain = [peer]
  for (let index = hops.length - 1; index >= 0 && trust.trusts(chain[0]!); index--) {
    const hop = hops[index]
    const address = hop === undefined ? undefined : hopAddress(hop)
    if (address === undefined) break
    chain.unshift(address)
  }
  return chain
}

/**
 * Where a request came from, as the trusted proxies tell it. Of everybody else only the address of the connection
 * counts.
 */
export interface RequestSource {
  clientIp: string
  /** What `x-forwarded-for` says upstream: the client, then the proxies. Nothing in it was written by the client. */
  forwardedFor: string
  /** As the proxy wrote it; undefined: it wrote nothing. */
  proto: string | undefined
  host: string | undefined
}

/** The fields that proxies write, each undefined when it was not received. */
export type ProxyFields = Record<'forwarded' | 'forwardedFor' | 'forwardedProto' | 'forwardedHost', string | undefined>

/** Throws `AppError` `invalid_request` for a `Forwarded` field that cannot be read. */
export const sourceOf = (peer: string, fields: ProxyFields, trust: ProxyTrust): RequestSource => {
  if (!trust.trusts(peer)) return { clientIp: peer, forwardedFor: peer, proto: undefined, host: undefined }
  const { forwardedFor, forwardedProto: proto, forwardedHost: host } = fields
  if (trust.forwardedBy === 'x-forwarded') {
    const chain = vouchedFor(peer, forwardedFor?.split(',') ?? [], trust)
    return { clientIp: chain[0]!, forwardedFor: chain.join(', '), proto, host }
  }
  const elements = parseForwarded(fields.forwarded ?? '')
  if (!elements) throw refuse('The Forwarded field cannot be read as RFC 7239 has it.')
  const hops = elements.map((element) => element.for)
  const chain = vouchedFor(peer, hops, trust)
  // Each proxy describes the request that it received; the outermost trusted one may hide the address of its peer.
  const read = chain.length - 1
  const outermost = elements[elements.length - read - (trust.trusts(chain[0]!) ? 1 : 0)] ?? elements[0]
  return { clientIp: chain[0]!, forwardedFor: chain.join(', '), proto: outermost?.proto, host: outermost?.host }
}
