import type { Contradiction } from './contradictions.ts'
import type { GatewayFile } from './settings/file.ts'
import type { TlsSettings } from './settings/listen.ts'

interface Listener {
  host: string
  port: number
  tls?: Pick<TlsSettings, 'clientCertificate' | 'clientCa'> | undefined
}

/** Mistakes that every listener can have, and mistakes between two of them. */
export const listenerContradictions = (file: GatewayFile): Contradiction[] => {
  const found: Contradiction[] = []
  const { listen, admin, extAuthz, inspection } = file
  if (listen.http2 && !listen.tls) {
    found.push({ path: ['listen', 'http2'], message: 'needs tls: clients choose HTTP/2 there' })
  }
  const all: [string, Listener][] = Object.entries({ inspection, extAuthz, listen, admin }).flatMap(
    ([name, listener]) => (listener ? [[name, listener]] : []),
  )
  for (const [index, [name, listener]] of all.entries()) {
    for (const [other] of all.slice(index + 1).filter(([, later]) => isSameListener(listener, later))) {
      found.push({ path: [name, 'port'], message: `${name} and ${other} have the same port` })
    }
    if (listener.tls?.clientCertificate !== undefined && listener.tls.clientCa === undefined) {
      const message = 'needs clientCa, to verify certificates with'
      found.push({ path: [name, 'tls', 'clientCertificate'], message })
    }
  }
  return found
}

/** Whether two listeners would need one port. One that the system chooses is never the same. */
const isSameListener = (one: Listener, other: Listener): boolean => {
  if (one.port !== other.port || one.port === 0) return false
  return one.host === other.host || isEveryAddress(one.host) || isEveryAddress(other.host)
}

const isEveryAddress = (host: string): boolean => host === '0.0.0.0' || host === '::'
