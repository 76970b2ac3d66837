import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether an address is plain http and leaves this machine; files are not asked. */
export const isPlainHttp = (url: string | undefined): boolean => {
  if (url === undefined || !URL.canParse(url)) return false
  const { protocol, hostname } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const family = isIP(host)
  const local = family === 0 ? /(?:^|\.)localhost$/.test(host) : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')
  return protocol === 'http:' && !local
}
