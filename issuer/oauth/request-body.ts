import type { IncomingMessage } from 'node:http'
import { OAuthError } from '../../platform/problem.ts'

/** In bytes. More is 413, read no further. */
export const maxBodyBytes = 65_536

const tooLarge = () =>
  new OAuthError('invalid_request', `The request body is larger than ${maxBodyBytes} bytes.`, {
    status: 413,
    headers: { connection: 'close' },
  })

/** The whole body, or 413. A caller that goes away rejects with the socket's error, which nobody is left to read. */
export const readBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) {
      reject(tooLarge())
      return
    }
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > maxBodyBytes) {
        request.pause()
        request.removeAllListeners('data')
        reject(tooLarge())
        return
      }
      chunks.push(chunk)
    })
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    request.once('error', reject)
  })
