import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

/** A request as its bytes say it, read by RFC 9112 to the letter. */
export interface StrictRequest {
  method: string
  target: string
  /** Names as sent. */
  fields: [name: string, value: string][]
  body: string
}

export interface StrictUpstream {
  readonly url: string
  readonly seen: StrictRequest[]
  /** What no sender of HTTP/1.1 may send, in words. A test wants none. */
  readonly violations: string[]
  close(): Promise<void>
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/
const fieldValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

class Violation extends Error {}

const parseHead = (head: string): Omit<StrictRequest, 'body'> => {
  const [first = '', ...lines] = head.split('\r\n')
  const line = requestLine.exec(first)
  if (!line) throw new Violation(`request line ${JSON.stringify(first)}`)
  const fields = lines.map((text): [string, string] => {
    const colon = text.indexOf(':')
    const [name, value] = [text.slice(0, colon), text.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, '')]
    if (colon < 1 || !token.test(name) || !fieldValue.test(value)) throw new Violation(`field ${JSON.stringify(text)}`)
    return [name, value]
  })
  return { method: line[1]!, target: line[2]!, fields }
}

/** Takes one whole request from the front of `bytes`; undefined when it is not all there. */
const takeRequest = (bytes: Buffer): { request: StrictRequest; rest: Buffer } | undefined => {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = parseHead(bytes.subarray(0, end).toString('latin1'))
  const values = (wanted: string) => head.fields.filter(([name]) => name.toLowerCase() === wanted).map(([, v]) => v)
  if (values('host').length !== 1) throw new Violation(`${values('host').length} host fields`)
  const [lengths, codings] = [values('content-length'), values('transfer-encoding')]
  if (lengths.length + codings.length > 1) throw new Violation(`framed by ${[...lengths, ...codings].join(' and ')}`)
  const start = end + 4
  if (codings.length === 0) {
    const text = lengths[0] ?? '0'
    if (!/^\d{1,15}$/.test(text)) throw new Violation(`content-length ${text}`)
    const length = Number(text)
    if (bytes.length < start + length) return undefined
    const body = bytes.subarray(start, start + length).toString('latin1')
    return { request: { ...head, body }, rest: bytes.subarray(start + length) }
  }
  if (codings[0] !== 'chunked') throw new Violation(`transfer-encoding ${codings[0]}`)
  const chunks = takeChunks(bytes.subarray(start))
  return chunks && { request: { ...head, body: chunks.body }, rest: chunks.rest }
}

const takeChunks = (from: Buffer): { body: string; rest: Buffer } | undefined => {
  let rest = from
  let body = ''
  for (;;) {
    const lineEnd = rest.indexOf('\r\n')
    if (lineEnd < 0) return undefined
    const size = rest.subarray(0, lineEnd).toString('latin1')
    // Extensions are allowed, but none may come through a gateway.
    if (!/^[0-9a-fA-F]{1,8}$/.test(size)) throw new Violation(`chunk size ${JSON.stringify(size)}`)
    const length = Number.parseInt(size, 16)
    const end = lineEnd + 2 + length
    if (rest.length < end + 2) return undefined
    if (rest.subarray(end, end + 2).toString('latin1') !== '\r\n') throw new Violation('chunk without its end')
    body += rest.subarray(lineEnd + 2, end).toString('latin1')
    rest = rest.subarray(end + 2)
    if (length === 0) return { body, rest }
  }
}

/**
 * An API that reads raw bytes, with a parser that has nothing in common with Node's: whatever a gateway sends is one
 * well-formed request after the other, or a violation. Answers 200 with an empty body.
 */
export const startStrictUpstream = async (): Promise<StrictUpstream> => {
  const seen: StrictRequest[] = []
  const violations: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let bytes: Buffer = Buffer.alloc(0)
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      try {
        for (let taken = takeRequest(bytes); taken; taken = takeRequest(bytes)) {
          bytes = Buffer.from(taken.rest)
          seen.push(taken.request)
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
        }
      } catch (error) {
        violations.push(error instanceof Violation ? error.message : String(error))
        socket.destroy()
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    violations,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
