import type { IncomingMessage } from 'node:http'
import { problem } from '../refusals/problems.ts'
import type { ForwardedRequest } from './forwarded-request.ts'

/** Stands for a body that goes upstream as it arrives, so that it can be sent once only. */
export const streamed = Symbol('streamed')

/** null = none. */
export type RequestBody = Buffer | typeof streamed | null

export const tooLarge = () => problem('content_too_large')

/** Reads a small body whole before it is sent. */
export const readAhead = (incoming: IncomingMessage, forwarded: ForwardedRequest): void => {
  const chunks: Buffer[] = []
  forwarded.waitsForClient = true
  incoming.on('data', (chunk: Buffer) => {
    forwarded.clientRate.moved(chunk.length)
    chunks.push(chunk)
  })
  incoming.once('end', () => {
    forwarded.waitsForClient = false
    // The client may have left in between, or have been too slow.
    if (!forwarded.ended) forwarded.dispatch(wholeOf(chunks))
  })
}

/** Without a copy of the only one. */
const wholeOf = (chunks: readonly Buffer[]): Buffer => {
  const [first, ...others] = chunks
  return first && others.length === 0 ? first : Buffer.concat(chunks)
}

/**
 * The body as it arrives; nothing of it is read before the first chunk is asked for. Leaves the connection to the
 * client open when the upstream stops reading: its answer must still get there.
 */
export async function* chunksOf(
  incoming: IncomingMessage,
  limit: number,
  forwarded: ForwardedRequest,
): AsyncGenerator<Buffer> {
  let size = 0
  forwarded.waitsForClient = true
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    forwarded.clientRate.moved(chunk.length)
    if (size > limit) throw tooLarge()
    forwarded.waitsForClient = false
    yield chunk
    forwarded.waitsForClient = true
  }
  forwarded.waitsForClient = false
}
