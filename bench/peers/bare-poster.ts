import { Pool } from 'undici'
import { answerCalls } from '../harness/calls.ts'

/**
 * The floor: a loop that POSTs the same bytes with undici and looks at the status. Signs, stores and orders nothing,
 * retries never.
 */
export type Posting = { port: number; connections: number; requests: number; bytes: number }

answerCalls({
  start: () => {},
  /** Seconds it took. */
  run: async ({ port, connections, requests, bytes }: Posting): Promise<number> => {
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 })
    const body = Buffer.alloc(bytes, 'x')
    const headers = { 'content-type': 'application/json' }
    let left = requests
    const started = performance.now()
    const loop = async () => {
      while (left > 0) {
        left -= 1
        const { statusCode, body: answer } = await pool.request({ path: '/', method: 'POST', headers, body })
        if (statusCode !== 204) throw new Error(`the sink answered ${statusCode}`)
        await answer.dump()
      }
    }
    await Promise.all(Array.from({ length: connections }, loop))
    const seconds = (performance.now() - started) / 1000
    await pool.destroy()
    return seconds
  },
})
