import { BlockList, isIP } from 'node:net'

/** Who is believed about where a request came from. */
export interface ProxyTrust {
  trusts(address: string): boolean
}

const version = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** `::ffff:192.0.2.1` → `192.0.2.1`: what a listener on `::` reports for IPv4. */
export const plainAddress = (address: string | undefined): string =>
  address === undefined ? '' : address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

/** `10.0.0.0/8`, `fd00::/8`, or a single address. */
export const isNetwork = (text: string): boolean => {
  const [address, prefix, ...rest] = text.split('/')
  const bits = isIP(address!) === 4 ? 32 : isIP(address!) === 6 ? 128 : 0
  if (bits === 0 || rest.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

/** @param networks as `isNetwork` accepts them; none: nobody is trusted. */
export const createProxyTrust = (networks: readonly string[]): ProxyTrust => {
  if (networks.length === 0) return { trusts: () => false }
  const list = new BlockList()
  for (const network of networks) {
    const [address, prefix] = network.split('/') as [string, string?]
    if (prefix === undefined) list.addAddress(address, version(address))
    else list.addSubnet(address, Number(prefix), version(address))
  }
  return { trusts: (address) => isIP(address) !== 0 && list.check(address, version(address)) }
}

/** The last address of the chain that no trusted proxy vouches for: the first untrusted hop, read from the right. */
export const clientAddress = (peer: string, forwardedFor: string | undefined, trust: ProxyTrust): string => {
  if (forwardedFor === undefined || !trust.trusts(peer)) return peer
  let client = peer
  for (const hop of forwardedFor.split(',').reverse()) {
    const address = plainAddress(hop.trim())
    // What follows an unreadable hop cannot be vouched for either.
    if (isIP(address) === 0) return client
    client = address
    if (!trust.trusts(address)) return client
  }
  return client
}
