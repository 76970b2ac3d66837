import type { ServerResponse } from 'node:http'

const everyMs = 1_000

/**
 * Ends an answer that goes on, such as a stream, when what it was allowed by is over. What cannot be found out just now
 * is asked again.
 */
export const endWhenOver = (response: ServerResponse, isOver: () => Promise<boolean>): void => {
  let isAsking = false
  const timer = setInterval(async () => {
    if (isAsking) return
    isAsking = true
    const over = await isOver().catch(() => false)
    isAsking = false
    if (over && !response.writableEnded) response.destroy()
  }, everyMs)
  timer.unref()
  response.once('close', () => clearInterval(timer))
}
