import { AnswerTooLarge } from '../platform/http/bounded-client.ts'
import { TargetNotAllowed } from '../platform/http/outbound.ts'

/** Why an attempt failed without an answer, for people. */

export const overdue = Symbol('overdue')
export const brokenOff = Symbol('broken off')

/** Sentences for what happens often; the rest by its code only, since messages of others may quote anything. */
const reasons: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was closed without an answer.',
  UND_ERR_SOCKET: 'The connection was closed without an answer.',
  EPIPE: 'The connection was closed without an answer.',
  ENOTFOUND: 'The host name does not resolve.',
  EAI_AGAIN: 'The host name could not be resolved just now.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The network cannot be reached.',
  ETIMEDOUT: 'The connection took too long.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection took too long.',
  HTTPParserError: 'The answer is not HTTP.',
  UND_ERR_HEADERS_OVERFLOW: 'The answer has too many or too large header fields.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is not trusted: self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The certificate is not trusted: self-signed.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate is not trusted: its issuer is unknown.',
  CERT_HAS_EXPIRED: 'The certificate has expired.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate is for another host.',
  CERT_NOT_YET_VALID: 'The certificate is not valid yet.',
  // What OpenSSL says of weak ones is not among the codes that Node knows.
  UNSPECIFIED: 'The certificate is not trusted, as one with a weak key or a weak signature.',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'The receiver speaks no TLS that is safe.',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'The receiver speaks no TLS that is safe.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The receiver speaks no TLS on this port.',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'The receiver speaks no TLS on this port.',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'The receiver asks for a client certificate.',
}

const ownFaults = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'ENETDOWN'])

/** This machine has no sockets, ports, memory or network left: nothing that the receiver is to blame for. */
export const isOwnFault = (error: unknown): boolean =>
  ownFaults.has((error as NodeJS.ErrnoException | null)?.code ?? '')

export const reasonOf = (error: unknown, timeoutMs: number): string => {
  if (error === overdue) return `There was no answer within ${timeoutMs} ms.`
  if (error === brokenOff) return 'The attempt was broken off.'
  const { code, name } = error as NodeJS.ErrnoException
  if (error instanceof TargetNotAllowed || error instanceof AnswerTooLarge) return error.message
  if (isOwnFault(error)) return `The relay could not open a connection (${code}).`
  return reasons[code ?? name] ?? `The request failed (${code ?? 'unknown reason'}).`
}
