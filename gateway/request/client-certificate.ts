import { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { PolicyInput } from '../../policies/decide.ts'
import { refuse } from './canonical-target.ts'

/** What rules see of a connection whose client has shown a certificate. */
export type ConnectionTls = NonNullable<PolicyInput['tls']>

const connectionTls = Symbol('connection tls')
type Marked = Socket & { encrypted?: boolean; [connectionTls]?: ConnectionTls }

/** Of `input.tls` as JSON, in characters: a quarter of what a whole input may have. */
const largest = 16_384

/**
 * Keeps, for the requests of a connection, what its verified client certificate says. Called once for each. False: it
 * says more than rules are given, and nothing is kept.
 */
export const rememberClientCertificate = (socket: TLSSocket, certificate: X509Certificate): boolean => {
  const serverName = socket.servername
  const tls: ConnectionTls = {
    version: (socket.getProtocol() ?? '').replace('TLSv', ''),
    cipher: socket.getCipher().standardName,
    ...(typeof serverName === 'string' && serverName !== '' && { serverName }),
    clientCertificate: describe(certificate),
  }
  if (JSON.stringify(tls).length > largest) return false
  ;(socket as Marked)[connectionTls] = tls
  return true
}

/**
 * Keeps the same of a connection that ends at a proxy, which forwards the certificate: version and cipher are not
 * known, and empty. `encoded` is PEM, percent-encoded. Throws `AppError` `invalid_request` when it cannot be read.
 */
export const rememberForwardedCertificate = (socket: Socket, encoded: string, serverName: string | undefined): void => {
  let clientCertificate = forwarded.get(encoded)
  if (!clientCertificate) {
    clientCertificate = readForwarded(encoded)
    if (forwarded.size >= mostForwarded) forwarded.clear()
    forwarded.set(encoded, clientCertificate)
  }
  const name = serverName ? { serverName } : {}
  ;(socket as Marked)[connectionTls] = { version: '', cipher: '', ...name, clientCertificate }
}

/** Reading one takes longer than all the rest of a decision, and connections have many requests. */
const forwarded = new Map<string, ConnectionTls['clientCertificate']>()
const mostForwarded = 500

const readForwarded = (encoded: string): ConnectionTls['clientCertificate'] => {
  try {
    const described = describe(new X509Certificate(decodeURIComponent(encoded)))
    if (encoded.length <= largest && JSON.stringify(described).length <= largest) return described
  } catch {}
  throw refuse('The client certificate cannot be read.')
}

/** Undefined: the client has shown no certificate, or the listener does not verify any. */
export const connectionTlsOf = (socket: Socket): ConnectionTls | undefined => (socket as Marked)[connectionTls]

/** Whether the connection to this process is one of TLS. */
export const isEncrypted = (socket: Socket): boolean => (socket as Marked).encrypted === true

const describe = (certificate: X509Certificate): ConnectionTls['clientCertificate'] => ({
  subject: distinguishedName(certificate.subject),
  issuer: distinguishedName(certificate.issuer),
  serial: certificate.serialNumber.toLowerCase(),
  thumbprint: Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
  names: namesOf(certificate.subjectAltName ?? ''),
  notAfter: Math.floor(certificate.validToDate.getTime() / 1_000),
})

/**
 * Node has a line for each part, the most general first; RFC 4514 begins with the last. What a value could use to look
 * like several parts (`,`, `+`, a line break, NUL) is escaped already, so two subjects are never the same text.
 */
const distinguishedName = (lines: string | undefined): string =>
  (lines ?? '').split('\n').reverse().join(',').replaceAll(' + ', '+')

/** Of the kinds that name a client; Node quotes those that could be read in two ways, as JSON. */
const namesOf = (subjectAltName: string): ConnectionTls['clientCertificate']['names'] => {
  const names = { dns: [] as string[], uri: [] as string[], email: [] as string[] }
  for (const [, kind, text] of subjectAltName.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?=, |$)/g)) {
    const list = names[kind!.toLowerCase() as keyof typeof names]
    list?.push(text!.startsWith('"') ? (JSON.parse(text!) as string) : text!)
  }
  return names
}
