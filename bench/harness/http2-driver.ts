import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import type { Drive } from './load-generator.ts'

/** One connection of HTTP/2, as many streams at a time as `streams` says, until there is no next request. */
export const driveHttp2 = ({ port, protocol, streams, nextRequest, check, latencies }: Drive): Promise<void> =>
  new Promise((resolve, reject) => {
    const scheme = protocol === 'h2c' ? 'http' : 'https'
    const session = connect(`${scheme}://127.0.0.1:${port}`, { rejectUnauthorized: false })
    let left = streams
    const finish = (error: Error) => {
      session.destroy()
      reject(error)
    }
    const send = () => {
      const request = nextRequest()
      if (!request) {
        if (--left > 0) return
        session.destroy()
        return resolve()
      }
      const { headers, body } = parsed(request, scheme)
      const sentAt = performance.now()
      const stream = session.request(headers, { endStream: body === '' })
      const chunks: Buffer[] = []
      let answer: IncomingHttpHeaders & { ':status'?: number } = {}
      stream.on('response', (fields) => {
        answer = fields
      })
      // Of gRPC: whether the call worked. Its status of HTTP is always 200.
      stream.on('trailers', (fields) => {
        if ((fields['grpc-status'] ?? '0') !== '0') answer = { ...answer, ...fields, ':status': 500 }
      })
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk))
      stream.on('error', finish)
      stream.on('end', () => {
        latencies.push(performance.now() - sentAt)
        try {
          check({ status: answer[':status'] ?? 0, head: JSON.stringify(answer), body: Buffer.concat(chunks) })
          send()
        } catch (error) {
          finish(error as Error)
        }
      })
      if (body !== '') stream.end(body, 'latin1')
    }
    session.on('error', finish)
    session.once('connect', () => {
      for (let number = 0; number < streams; number++) send()
    })
  })

type Parsed = { headers: OutgoingHttpHeaders; body: string }

const known = new WeakMap<Buffer, Parsed>()

/** A request of HTTP/1.1 as one of HTTP/2 (RFC 9113 §8.3.1); each is read once. */
const parsed = (request: Buffer, scheme: string): Parsed => {
  const before = known.get(request)
  if (before) return before
  const text = request.toString('latin1')
  const end = text.indexOf('\r\n\r\n')
  const [line = '', ...fields] = text.slice(0, end).split('\r\n')
  const [method, path] = line.split(' ')
  const headers: OutgoingHttpHeaders = { ':method': method, ':path': path, ':scheme': scheme }
  for (const field of fields) {
    const colon = field.indexOf(':')
    const name = field.slice(0, colon).toLowerCase()
    headers[name === 'host' ? ':authority' : name] = field.slice(colon + 1).trim()
  }
  const made = { headers, body: text.slice(end + 4) }
  known.set(request, made)
  return made
}
