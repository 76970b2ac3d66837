/**
 * Reads one HTTP/1.1 answer from a socket's chunks, with as little work as possible: the load generator must stay
 * cheaper than what it measures. Knows `content-length` and `chunked`, which is all a server under test may send.
 */
export type HttpAnswer = { status: number; head: string; body: Buffer }

const headEnd = Buffer.from('\r\n\r\n')

export const answerReader = (): { push: (chunk: Buffer) => HttpAnswer | undefined } => {
  let received: Buffer | undefined
  return {
    /** The answer once it is complete; then starts over. Throws when the bytes are no answer it understands. */
    push: (chunk) => {
      received = received ? Buffer.concat([received, chunk]) : chunk
      const answer = parse(received)
      if (answer) received = undefined
      return answer
    },
  }
}

const parse = (bytes: Buffer): HttpAnswer | undefined => {
  const end = bytes.indexOf(headEnd)
  if (end === -1) return undefined
  const head = bytes.toString('latin1', 0, end)
  const status = Number(head.slice(9, 12))
  const start = end + headEnd.length

  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length) {
    const total = start + Number(length[1])
    if (bytes.length > total) throw new Error(`${bytes.length - total} bytes follow the answer: ${head}`)
    return bytes.length === total ? { status, head, body: bytes.subarray(start) } : undefined
  }
  if (status === 204 || status === 304) return { status, head, body: bytes.subarray(start) }
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const body = dechunk(bytes, start)
    return body && { status, head, body }
  }
  throw new Error(`an answer without a length: ${head}`)
}

/** RFC 9112 §7.1, without trailers. */
const dechunk = (bytes: Buffer, start: number): Buffer | undefined => {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const next = lineEnd + 2 + size + 2
    if (bytes.length < next) return undefined
    if (size === 0) return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = next
  }
}
