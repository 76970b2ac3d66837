import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { Certificate } from './certificates.ts'

/** A certificate that clients of this name never get. */
export interface Unused {
  name: string
  certificate: string
  /** The one that comes first and is used. */
  inUse: string
}

export interface Contexts {
  /** Undefined for a name that no certificate has: the first one is used, and the client sees that it is not meant. */
  find(serverName: string): SecureContext | undefined
  readonly unused: readonly Unused[]
}

/**
 * Which certificate serves which name. A name has one, whatever its key is: of a context that is chosen by name, Node
 * takes one certificate only, so clients could not choose between ECDSA and RSA.
 */
export const contextsOf = (
  certificates: readonly Certificate[],
  optionsOf: (certificate: Certificate) => SecureContextOptions,
): Contexts => {
  const byName = new Map<string, { context: SecureContext; cert: string }>()
  const unused: Unused[] = []
  for (const certificate of certificates) {
    const { cert } = certificate.files
    const context = createSecureContext(optionsOf(certificate))
    for (const name of new Set(certificate.names)) {
      const earlier = byName.get(name)
      if (earlier) unused.push({ name, certificate: cert, inUse: earlier.cert })
      else byName.set(name, { context, cert })
    }
  }
  return {
    find(serverName) {
      // RFC 6066 §3 has it without a dot at the end; some clients send one.
      const name = serverName.toLowerCase().replace(/\.$/, '')
      return (byName.get(name) ?? byName.get(`*${name.slice(name.indexOf('.'))}`))?.context
    },
    unused,
  }
}
