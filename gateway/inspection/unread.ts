import type { ServerResponse } from 'node:http'
import { problem } from '../refusals/problems.ts'

/** Bounds the memory of answers that their readers have not taken yet. */
export interface Unread {
  /** Before `bytes` are written. Throws `AppError` 503 where there is no room. */
  add(response: ServerResponse, bytes: number): void
}

/** Of all answers together, in bytes. */
const mostUnread = 67_108_864
/** For a reader to take its answer. In ms. */
const readingMs = 60_000

export const createUnread = (): Unread => {
  let unread = 0
  return {
    add(response, bytes) {
      if (unread + bytes > mostUnread) throw problem('server.unavailable', { headers: { 'retry-after': '5' } })
      unread += bytes
      const cutOff = setTimeout(() => response.destroy(), readingMs).unref()
      response.once('close', () => {
        clearTimeout(cutOff)
        unread -= bytes
      })
    },
  }
}
