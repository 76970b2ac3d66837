import { EventEmitter } from 'node:events'
import type { PoolClient } from 'pg'
import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database/database.ts'
import { runCommand } from '../platform/database/run-statement.ts'
import type { Logger } from '../platform/logger.ts'
import { pause } from '../platform/wake-up.ts'

/**
 * Wake-ups between processes that share a database, on a connection of its own; inside the process they are immediate.
 */
export interface Notifier {
  notify(): void
  /** `payload`: what another process said beside, mostly nothing. */
  onNotify(listener: (payload: string) => void): () => void
  /** False while the connection is being made again; then only processes' own wake-ups and their polls work. */
  readonly connected: boolean
  close(): Promise<void>
}

// NOTIFY takes a lock that all commits share, so it is sent after the commit, and at most this often (measured: no cost
// at 5 ms).
const coalesceMs = 5

export const createNotifier = ({
  database,
  logger,
  channel = 'surrogate_events',
}: {
  database: Database
  logger: Logger
  /** What is announced on it; a plain SQL name. Default: events. */
  channel?: string
}): Notifier => {
  const emitter = new EventEmitter().setMaxListeners(0)
  const stopping = new AbortController()
  let client: PoolClient | undefined
  let timer: NodeJS.Timeout | undefined
  let sentAt = Number.NEGATIVE_INFINITY
  let sending = Promise.resolve()

  // One after the other; when it fails the others poll.
  const send = () => {
    timer = undefined
    sentAt = performance.now()
    sending = sending.then(async () => {
      if (client) await runCommand(client, `NOTIFY ${channel}`).catch(() => {})
    })
  }

  const listen = async () => {
    const connection = await database.pool.connect()
    const lost = new Promise<unknown>((resolve) => {
      connection.on('error', resolve)
      connection.once('end', resolve)
      if (stopping.signal.aborted) resolve(undefined)
      stopping.signal.addEventListener('abort', resolve, { once: true })
    })
    try {
      const { rows } = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      connection.on('notification', ({ processId, payload = '' }) => {
        if (processId !== rows[0]?.pid) emitter.emit('wake', payload)
      })
      await connection.query(`LISTEN ${channel}`)
      client = connection
      // Something may have been committed while nobody listened.
      emitter.emit('wake', '')
      await lost
    } finally {
      client = undefined
      connection.release(true)
    }
  }

  const run = async () => {
    const backOff = createBackOff()
    while (!stopping.signal.aborted) {
      try {
        await listen()
        backOff.reset()
      } catch (error) {
        logger.warn({ err: error }, 'waking other processes up does not work now; they poll')
      }
      if (!stopping.signal.aborted) await pause(backOff.next(), stopping.signal)
    }
  }
  const ended = run()

  return {
    notify() {
      emitter.emit('wake', '')
      if (timer !== undefined) return
      const early = sentAt + coalesceMs - performance.now()
      // A timer takes a millisecond at least.
      if (early > 0) timer = setTimeout(send, early)
      else send()
    },
    onNotify(listener) {
      emitter.on('wake', listener)
      return () => emitter.off('wake', listener)
    },
    get connected() {
      return client !== undefined
    },
    async close() {
      clearTimeout(timer)
      if (timer) send()
      await sending
      stopping.abort()
      await ended
    },
  }
}
