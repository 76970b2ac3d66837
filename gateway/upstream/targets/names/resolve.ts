import { promises as dns, type RecordWithTtl } from 'node:dns'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { DnsSettings } from '../../../config/settings/targets.ts'

/** The addresses of a name, in a fixed order, and for how long they are good, ms; undefined: nobody says. */
export interface Resolved {
  addresses: readonly string[]
  ttl: number | undefined
}

export interface NameResolver {
  /**
   * Rejects when there is no address. `before`: the last answer; a kind of addresses that cannot be asked for now keeps
   * what it had.
   */
  resolve(name: string, before: readonly string[]): Promise<Resolved>
  /** What is under way rejects. */
  close(): void
}

const timeout = 2_000
const tries = 2

/** The servers know the name, or that it does not exist; it has no such records. */
const nothing = new Set(['ENODATA', 'ENOTFOUND'])

/** Whether this machine has an address of IPv6 that others reach (RFC 4291 §2.5.6: fe80 is for one link). */
const machineHasIpv6 = (): boolean =>
  Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ family, internal, address }) => family === 'IPv6' && !internal && !/^fe[89ab]/i.test(address)),
  )

/**
 * Asks name servers for A and AAAA, since only their answers say how long they are good. What they do not know, the
 * system may (`hosts`, search domains), unless servers are named.
 */
export const createNameResolver = ({
  servers,
  family,
  hasIpv6 = machineHasIpv6,
}: Pick<DnsSettings, 'servers' | 'family'> & { hasIpv6?: () => boolean }): NameResolver => {
  const resolver = new dns.Resolver({ timeout, tries })
  if (servers) resolver.setServers(servers)
  const families = ([4, 6] as const).filter((version) => family === 'any' || family === `ipv${version}`)

  const ask = (name: string, version: 4 | 6): Promise<RecordWithTtl[]> =>
    version === 4 ? resolver.resolve4(name, { ttl: true }) : resolver.resolve6(name, { ttl: true })

  const preferred = (addresses: string[]): string[] => {
    const ofIpv4 = addresses.filter((address) => isIP(address) === 4)
    return family === 'any' && ofIpv4.length > 0 && !hasIpv6() ? ofIpv4 : addresses
  }

  return {
    async resolve(name, before) {
      const answers = await Promise.allSettled(families.map((version) => ask(name, version)))
      const records: RecordWithTtl[] = []
      const kept: string[] = []
      let failure: NodeJS.ErrnoException | undefined
      for (const [index, answer] of answers.entries()) {
        if (answer.status === 'fulfilled') records.push(...answer.value)
        else {
          failure ??= answer.reason
          if (nothing.has(answer.reason.code)) continue
          failure = answer.reason
          kept.push(...before.filter((address) => isIP(address) === families[index]))
        }
      }
      if (records.length > 0) {
        const addresses = preferred([...records.map(({ address }) => address), ...kept])
        return { addresses: inOrder(addresses), ttl: Math.min(...records.map(({ ttl }) => ttl)) * 1_000 }
      }
      if (servers) throw failure
      const found = await dns.lookup(name, { all: true }).catch(() => {
        throw failure
      })
      const fitting = found.filter((entry) => families.some((version) => version === entry.family))
      if (fitting.length === 0) throw failure
      return { addresses: inOrder(preferred(fitting.map(({ address }) => address))), ttl: undefined }
    },
    close: () => resolver.cancel(),
  }
}

const inOrder = (addresses: readonly string[]): string[] => [...new Set(addresses)].sort()
