import { isIPv6 } from 'node:net'

/**
 * Whose address it is, as far as limits go: an IPv4 address itself, of an IPv6 address its /64 network, which is what
 * one subscriber gets (RFC 6177): counted one by one they would never run out.
 */
export const addressKey = (written: string): string => {
  // An IPv4 address in IPv6 form is still one address.
  const address = written.replace(/^::ffff:(?=[\d.]+$)/i, '')
  if (!isIPv6(address)) return address
  // The URL parser writes it canonically: hexadecimal, the longest run of zeros as `::`, no zone.
  const [head = '', tail] = new URL(`http://[${address.split('%', 1)[0]}]/`).hostname.slice(1, -1).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
  return `${groups.slice(0, 4).join(':')}::/64`
}
