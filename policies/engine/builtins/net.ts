import { isIPv4, isIPv6 } from 'node:net'
import type { Meter } from '../base/meter.ts'
import { asString, asStrings, refuse } from '../values/operands.ts'
import type { RegoSet, Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** An address as a number of so many bits. IPv6 addresses that stand for IPv4 ones (`::ffff:…`) are those. */
interface Address {
  bits: 32 | 128
  value: bigint
}

interface Network extends Address {
  /** Length of the prefix. */
  length: number
  /** Whether it was written as a mapped IPv6 address: it then prints as one. */
  mapped?: boolean
}

const parseAddress = (text: string): Address | undefined => {
  if (isIPv4(text)) return { bits: 32, value: text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n) }
  if (!isIPv6(text) || text.includes('%')) return undefined
  const value = sixteenBytes(text)
  return value >> 32n === 0xffffn ? { bits: 32, value: value & 0xffffffffn } : { bits: 128, value }
}

const sixteenBytes = (text: string): bigint => {
  const groups = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, a, b, c, d) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  )
  const [head = '', tail] = groups.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const middle = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...middle, ...right].reduce((sum, group) => sum * 65536n + BigInt(`0x${group}`), 0n)
}

/** `prefix/length`; the bits behind the prefix are dropped. */
const asNetwork = (value: Value | undefined): Network => parseNetwork(asString(value)) ?? refuse('not a network')

const parseNetwork = (text: string): Network | undefined => {
  const [, address = '', digits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? []
  const parsed = parseAddress(address)
  if (!parsed) return undefined
  const isMapped = address.includes(':') && parsed.bits === 32
  const length = Number(digits) - (isMapped ? 96 : 0)
  if (length < 0 && isMapped && Number(digits) >= 0)
    return masked({ bits: 128, value: sixteenBytes(address), length: Number(digits) })
  if (length > parsed.bits) return undefined
  return { ...masked({ ...parsed, length }), ...(isMapped && { mapped: true }) }
}

const masked = (network: Network): Network => {
  const rest = BigInt(network.bits - network.length)
  return { ...network, value: (network.value >> rest) << rest }
}

const lastOf = ({ bits, value, length }: Network): bigint => value | ((1n << BigInt(bits - length)) - 1n)

const text = ({ bits, value }: Address): string => {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - index * 16)) & 0xffffn).toString(16))
  const runs = [...groups.join(':').matchAll(/(?:^|:)(?:0(?::0)+)(?=:|$)/g)].map(([run]) => run)
  const longest = runs.sort((a, b) => b.replace(/^:/, '').length - a.replace(/^:/, '').length)[0]
  if (longest === undefined) return groups.join(':')
  return groups.join(':').replace(longest, '::').replace(':::', '::')
}

// --- built-in functions

/** Larger networks are refused: a caller who chooses one must not be able to fill the memory. Addresses. */
const largestExpansion = 65_536n

const unitsForAddress = 30
const unitsForNetwork = 400

const expand = (network: Network, { spend }: Meter): RegoSet => {
  const last = lastOf(network)
  if (last - network.value >= largestExpansion) refuse(`the network has more than ${largestExpansion} addresses`)
  // Those of IPv6 take several times as long to write.
  spend(Number(last - network.value + 1n) * (network.bits === 32 ? 1 : 4) * unitsForAddress)
  const addresses: RegoSet = new Set()
  for (let value = network.value; value <= last; value++) addresses.add(text({ bits: network.bits, value }))
  return addresses
}

interface Range {
  bits: 32 | 128
  first: bigint
  last: bigint
  /** How it was written, for as long as it was not joined with others. */
  written?: string
}

/** An IPv4 address without a length counts with that of its class, as Go's `DefaultMask` says. */
const rangeOf = (written: string): Range => {
  if (written.includes('/')) {
    const network = parseNetwork(written) ?? refuse('not a network')
    return { bits: network.bits, first: network.value, last: lastOf(network) }
  }
  const address = parseAddress(written) ?? refuse('not an address or a network')
  if (address.bits !== 32) refuse('an IPv6 network needs a prefix length')
  const top = address.value >> 24n
  const network = masked({ ...address, length: top < 128n ? 8 : top < 192n ? 16 : 24 })
  return { bits: 32, first: network.value, last: lastOf(network), written: `${text(address)}/${network.length}` }
}

const joined = (ranges: Range[]): Range[] => {
  const result: Range[] = []
  for (const range of ranges.sort((a, b) => a.bits - b.bits || (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = result.at(-1)
    if (before?.bits !== range.bits || range.first > before.last + 1n) {
      result.push(range)
      continue
    }
    result[result.length - 1] = {
      bits: range.bits,
      first: before.first,
      last: before.last > range.last ? before.last : range.last,
    }
  }
  return result
}

/** The fewest networks that cover a range. */
const networksOf = ({ bits, first, last }: Range): Network[] => {
  const networks: Network[] = []
  for (let value = first; value <= last; ) {
    let length: number = bits
    while (length > 0) {
      const wider = masked({ bits, value, length: length - 1 })
      if (wider.value !== value || lastOf(wider) > last) break
      length--
    }
    networks.push({ bits, value, length })
    value = lastOf({ bits, value, length }) + 1n
  }
  return networks
}

const merge = (written: readonly string[], { spend }: Meter): RegoSet => {
  spend(unitsForNetwork * written.length)
  return new Set(
    joined(written.map(rangeOf)).flatMap((range) =>
      range.written === undefined
        ? networksOf(range).map((network) => `${text(network)}/${network.length}`)
        : [range.written],
    ),
  )
}

/** A network or address of `net.cidr_contains_matches`, with the key that it reports. */
interface Entry {
  /** The text itself, its index, or the name of its member. */
  key: Value
  written: string
}

const asEntries = (value: Value | undefined): Entry[] => {
  if (typeof value === 'string') return [{ key: value, written: value }]
  if (Array.isArray(value)) return value.map((item, index) => ({ key: index, written: first(item) }))
  if (value instanceof Set) return [...value].map((item) => ({ key: item, written: first(item) }))
  if (value instanceof Map) return [...value].map(([key, item]) => ({ key, written: first(item) }))
  return refuse('operand must be a string, an array, a set or an object')
}

const first = (item: Value): string =>
  typeof item === 'string' ? item : Array.isArray(item) && item.length > 0 ? asString(item[0]) : refuse('not a network')

const networkOrAddress = (written: string): Network => {
  const network = parseNetwork(written)
  if (network) return network
  const address = parseAddress(written) ?? refuse('not an address or a network')
  return { ...address, length: address.bits }
}

const unitsForPair = 4
const unitsForMatch = 30

const containsMatches = (networks: readonly Entry[], others: readonly Entry[], { spend }: Meter): RegoSet => {
  spend(unitsForNetwork * (networks.length + others.length))
  const inner = others.map(({ key, written }) => {
    const network = networkOrAddress(written)
    return { key, bits: network.bits, first: network.value, last: lastOf(network) }
  })
  const matches: RegoSet = new Set()
  for (const { key, written } of networks) {
    spend(unitsForPair * inner.length)
    const outer = parseNetwork(written) ?? refuse('not a network')
    const end = lastOf(outer)
    for (const other of inner) {
      if (outer.bits !== other.bits || outer.value > other.first || end < other.last) continue
      spend(unitsForMatch)
      matches.add([key, other.key])
    }
  }
  return matches
}

export const netBuiltins: BuiltinTable = {
  'net.cidr_contains_matches': builtin([asEntries, asEntries], containsMatches),
  'net.cidr_expand': builtin([asNetwork], expand),
  'net.cidr_is_valid': builtin([asString], (text) => parseNetwork(text) !== undefined),
  'net.cidr_merge': builtin([asStrings], merge),
}
