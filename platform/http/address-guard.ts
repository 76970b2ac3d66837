import { isIP } from 'node:net'

/**
 * Tells which network addresses outbound requests to customers' URLs may reach: public ones, and the networks the
 * operator names.
 */
export interface AddressGuard {
  /** Why this IP literal must not be reached; undefined when it may. Anything that is not an IP literal is refused. */
  refusal(address: string): string | undefined
  /** Whether this IP literal is in a network that the operator names. */
  isNamed(address: string): boolean
}

export interface Network {
  bytes: Uint8Array
  prefix: number
}

/**
 * `allowedNetworks`: CIDRs (or single addresses) that are allowed although they are not public, e.g. `10.0.0.0/8`.
 * Throws TypeError when one cannot be read; `parseNetwork` is for checking them beforehand.
 */
export const createAddressGuard = ({
  allowedNetworks = [],
}: {
  allowedNetworks?: readonly string[]
} = {}): AddressGuard => {
  const allowed = allowedNetworks.map((text) => {
    const network = parseNetwork(text)
    if (network === undefined) throw new TypeError(`Not a network in CIDR form: ${text}`)
    return network
  })
  const isInNamed = (forms: readonly Uint8Array[]) =>
    forms.some((form) => allowed.some((network) => contains(network, form)))
  return {
    isNamed(address) {
      const bytes = parseAddress(address)
      return bytes !== undefined && isInNamed([bytes, ...embeddedAddress(bytes)])
    },
    refusal(address) {
      const bytes = parseAddress(address)
      if (bytes === undefined) return 'it is not an IP address'
      const forms = [bytes, ...embeddedAddress(bytes)]
      if (isInNamed(forms)) return undefined
      const judged = forms.at(-1)!
      const itself = hostItself.find(([network]) => contains(network, bytes))
      if (itself) return itself[1]
      if (judged.length === 4) return refusedIPv4.find(([network]) => contains(network, judged))?.[1]
      if (!contains(globalUnicast, judged)) return 'it is not a public IPv6 address'
      return refusedIPv6.find(([network]) => contains(network, judged))?.[1]
    },
  }
}

/**
 * 4 or 16 bytes. Only what `node:net` reads as an address: no decimal, octal, hex or short forms (the URL parser has
 * unfolded those).
 */
const parseAddress = (text: string): Uint8Array | undefined => {
  const address = text.split('%')[0]!
  const family = isIP(address)
  if (family === 4) return Uint8Array.from(address.split('.').map(Number))
  if (family === 0) return undefined
  // A trailing dotted quad becomes two groups.
  const groups = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...quad: string[]) => {
    const [first, second, third, fourth] = quad.map(Number) as [number, number, number, number]
    return `${((first << 8) | second).toString(16)}:${((third << 8) | fourth).toString(16)}`
  })
  const [head = '', tail] = groups.split('::')
  const words = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  const left = words(head)
  const right = words(tail ?? '')
  const all = [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
  return Uint8Array.from(all.flatMap((word) => [word >> 8, word & 0xff]))
}

const contains = ({ bytes, prefix }: Network, address: Uint8Array): boolean => {
  if (bytes.length !== address.length) return false
  const whole = prefix >> 3
  for (let index = 0; index < whole; index += 1) if (bytes[index] !== address[index]) return false
  const mask = (0xff00 >> (prefix & 7)) & 0xff
  return mask === 0 || (bytes[whole]! & mask) === (address[whole]! & mask)
}

/** `10.0.0.0/8`, `fd00::/8`, or a single address; undefined when it is neither. */
export const parseNetwork = (text: string): Network | undefined => {
  const [address = '', prefix, ...rest] = text.split('/')
  const bytes = parseAddress(address)
  if (bytes === undefined || rest.length > 0) return undefined
  if (prefix === undefined) return { bytes, prefix: bytes.length * 8 }
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bytes.length * 8) return undefined
  return { bytes, prefix: Number(prefix) }
}

const network = (text: string): Network => parseNetwork(text)!
const table = (rows: Record<string, string>) =>
  Object.entries(rows).map(([cidr, reason]) => [network(cidr), reason] as const)

// IANA special-purpose registries (RFC 6890) and the metadata addresses of clouds that lie outside of them.
const refusedIPv4 = table({
  '0.0.0.0/8': 'it means "this network"',
  '10.0.0.0/8': 'it is a private address',
  '100.64.0.0/10': 'it is a shared (carrier or metadata) address',
  '127.0.0.0/8': 'it is a loopback address',
  '169.254.0.0/16': 'it is a link-local (metadata) address',
  '172.16.0.0/12': 'it is a private address',
  '192.0.0.0/24': 'it is reserved for protocol assignments',
  '192.0.2.0/24': 'it is reserved for documentation',
  '192.88.99.0/24': 'it is a reserved relay address',
  '192.168.0.0/16': 'it is a private address',
  '198.18.0.0/15': 'it is reserved for benchmarks',
  '198.51.100.0/24': 'it is reserved for documentation',
  '203.0.113.0/24': 'it is reserved for documentation',
  '224.0.0.0/4': 'it is a multicast address',
  '240.0.0.0/4': 'it is reserved',
  '168.63.129.16/32': 'it is a metadata address',
})

// Otherwise read as IPv4-compatible ones.
const hostItself = table({ '::/128': 'it means "this host"', '::1/128': 'it is a loopback address' })

// Everything that is routed publicly lies here (RFC 4291 §2.4): loopback, ULA, link-local, site-local and multicast do
// not.
const globalUnicast = network('2000::/3')
const refusedIPv6 = table({
  '2001::/23': 'it is reserved for protocol assignments',
  '2001:db8::/32': 'it is reserved for documentation',
  '2002::/16': 'it is a 6to4 address',
  '3fff::/20': 'it is reserved for documentation',
})

// Prefixes before an IPv4 address in the last 32 bits: what is reached is the IPv4 address.
const ipv4Wrappers = [
  '::ffff:0:0/96', // mapped, RFC 4291 §2.5.5.2
  '::/96', // compatible, RFC 4291 §2.5.5.1
  '::ffff:0:0:0/96', // translated, RFC 2765
  '64:ff9b::/96', // NAT64, RFC 6052
].map(network)

const embeddedAddress = (bytes: Uint8Array): Uint8Array[] =>
  bytes.length === 16 && ipv4Wrappers.some((wrapper) => contains(wrapper, bytes)) ? [bytes.subarray(12)] : []
