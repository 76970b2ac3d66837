import type { Socket } from 'node:net'
import { buildConnector } from 'undici'
import { problem } from '../refusals/problems.ts'
import { type UpstreamTls, withoutFinalDot } from './upstream-tls.ts'

/**
 * undici reads answers of HTTP/0.9 and HTTP/2.0 like those of HTTP/1.1, whose framing they do not share (RFC 9112
 * §2.3), and does not tell the version. So the beginning of each answer is looked at before it is parsed.
 */
export const connectForHttp1 = (options: {
  /** ms */
  timeout: number
  tls?: UpstreamTls | undefined
  /** Default: the name of the origin is looked up. */
  address?: string | undefined
}): buildConnector.connector => {
  const { timeout, tls, address } = options
  const connect = buildConnector({ timeout, allowH2: false, ...tls })
  return (to, callback) =>
    connect(at(to, address), (...outcome) => {
      if (outcome[1]) checkStatusLines(outcome[1])
      callback(...outcome)
    })
}

/** `host` is the name that the certificate is for, wherever the connection goes. */
const at = (to: buildConnector.Options, address: string | undefined): buildConnector.Options => ({
  ...to,
  hostname: address ?? to.hostname,
  host: withoutFinalDot(to.host ?? to.hostname),
})

const otherVersion = /^HTTP\/(?:0\.9|2\.0)/
const versionLength = 'HTTP/1.1'.length

const checkStatusLines = (socket: Socket): void => {
  const read = socket.read.bind(socket)
  let sent = -1
  let beginning: string | undefined
  socket.read = (size?: number): unknown => {
    const chunk: Buffer | null = read(size)
    if (chunk === null) return null
    // Requests are not pipelined: the first bytes after something was sent begin an answer, or belong to the answer to
    // a request that is still being sent.
    if (socket.bytesWritten !== sent) {
      sent = socket.bytesWritten
      beginning = ''
    }
    if (beginning === undefined) return chunk
    beginning += chunk.toString('latin1', 0, versionLength)
    if (otherVersion.test(beginning)) {
      socket.destroy(problem('upstream_protocol_error'))
      return null
    }
    if (beginning.length >= versionLength) beginning = undefined
    return chunk
  }
}
