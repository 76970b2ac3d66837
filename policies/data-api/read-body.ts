import type { IncomingMessage } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { ApiError, invalid } from './api-error.ts'

/** The caller left before the whole body was there: nobody waits for an answer. */
export class CallerGone extends Error {
  override readonly name = 'CallerGone'
}

export type ReadBody = (request: IncomingMessage) => Promise<string>

/** What all requests together may hold of bodies that are still being read. Bytes. */
const mostHeld = 67_108_864

/**
 * Reads bodies of at most `maxBytes`, packed and unpacked, as text. Throws `ApiError`: 400 for longer ones, as OPA, 503
 * while too many are on their way.
 */
export const createBodyReader = ({ maxBytes }: { maxBytes: number }): ReadBody => {
  let held = 0
  const tooLarge = () =>
    new ApiError(400, 'invalid_parameter', `the body is larger than ${maxBytes} bytes (--max-input)`, closing)

  const readAll = (request: IncomingMessage): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      const end = (settle: () => void) => {
        held -= size
        size = 0
        request.off('data', take)
        request.off('end', done)
        request.off('close', gone)
        settle()
      }
      const take = (chunk: Buffer) => {
        size += chunk.length
        held += chunk.length
        if (size > maxBytes) return end(() => reject(tooLarge()))
        if (held > mostHeld) return end(() => reject(busy()))
        chunks.push(chunk)
      }
      const done = () => end(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
      const gone = () => end(() => reject(new CallerGone()))
      request.on('data', take)
      request.on('end', done)
      request.on('close', gone)
      // Told by `close` as well.
      request.on('error', () => {})
    })

  return async (request) => {
    const { 'content-length': length, 'content-encoding': encoding = '' } = request.headers
    if (Number(length) > maxBytes) throw tooLarge()
    const bytes = await readAll(request)
    switch (encoding.toLowerCase()) {
      case '':
      case 'identity':
        return bytes.toString()
      case 'gzip':
        return unpacked(bytes, maxBytes, tooLarge).toString()
      default:
        throw invalid('bodies are sent as they are, or with Content-Encoding: gzip')
    }
  }
}

/** The rest of the body is not read: the connection cannot carry another request. */
const closing = { fields: ['Connection', 'close'] }

const busy = () =>
  new ApiError(503, 'internal_error', 'too many bodies are on their way', {
    fields: [...closing.fields, 'Retry-After', '1'],
  })

const unpacked = (bytes: Buffer, maxOutputLength: number, tooLarge: () => Error): Buffer => {
  try {
    return gunzipSync(bytes, { maxOutputLength })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw invalid('the body is not gzip, as its Content-Encoding says')
  }
}
