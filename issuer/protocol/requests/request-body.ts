import type { IncomingMessage } from 'node:http'
import { OAuthError } from '../../base/errors/problems.ts'

/** In bytes. More is 413. */
const maxBodyBytes = 65_536
/** A body that is too large is read up to here and thrown away, so that its sender gets to read the answer. */
const maxDiscardedBytes = 1_048_576

const tooLarge = (headers: Record<string, string> = {}) =>
  new OAuthError('invalid_request', `The request body is larger than ${maxBodyBytes} bytes.`, { status: 413, headers })

/** The whole body, or 413. */
export const readBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= maxBodyBytes) chunks.push(chunk)
      else if (length > maxDiscardedBytes) reject(tooLarge({ Connection: 'close' }))
    })
    request.once('end', () => {
      if (length > maxBodyBytes) reject(tooLarge())
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    })
    request.once('error', () => reject(new OAuthError('invalid_request', 'The request did not arrive whole.')))
  })
