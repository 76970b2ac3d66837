import { problem } from '../refusals/problems.ts'
import type { HeldBodies } from './held-bodies.ts'
import type { RoutedRequest } from './request-context.ts'

/**
 * Reads a body whole; resolves to undefined when the client left. What is kept counts in `held` until the answer is
 * out. Rejects with 413 when it is longer than `most` bytes, 408 when it takes longer than `time` ms, and 503 when the
 * bodies of all requests are too much.
 */
export const readBody = (
  { incoming, response }: RoutedRequest,
  { most, time, held }: { most: number; time: number; held: HeldBodies },
): Promise<Buffer | undefined> =>
  new Promise((resolve, reject) => {
    // One buffer that grows, since each small chunk would keep more alive than its bytes.
    let kept = Buffer.alloc(0)
    let size = 0
    const letGo = () => {
      held.give(kept.length)
      kept = Buffer.alloc(0)
    }
    const stop = () => {
      clearTimeout(timer)
      incoming.off('data', add)
      incoming.off('end', end)
    }
    const refuse = (error: Error) => {
      stop()
      letGo()
      // What is still to come of it is dropped, as Node does with bodies that nobody reads.
      incoming.resume()
      reject(error)
    }
    const add = (chunk: Buffer) => {
      const needed = size + chunk.length
      if (needed > most) return refuse(tooLarge(most))
      if (needed > kept.length) {
        const length = Math.min(most, Math.max(needed, 2 * kept.length))
        if (!held.take(length)) return refuse(tooMany())
        const longer = Buffer.allocUnsafeSlow(length)
        kept.copy(longer, 0, 0, size)
        letGo()
        kept = longer
      }
      chunk.copy(kept, size)
      size = needed
    }
    const end = () => {
      stop()
      resolve(kept.subarray(0, size))
    }
    const timer = setTimeout(() => refuse(problem('request_timeout')), time)
    incoming.on('data', add)
    incoming.once('end', end)
    // Without a listener for it, an error of the connection would end the process.
    incoming.on('error', () => {})
    response.once('close', () => {
      stop()
      letGo()
      resolve(undefined)
    })
  })

export const tooLarge = (most: number) =>
  problem('content_too_large', { detail: `The request body may have ${most} bytes at most here.` })

const tooMany = () => problem('server.unavailable', { headers: { 'retry-after': '1' } })
