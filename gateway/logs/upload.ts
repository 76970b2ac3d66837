import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { request } from 'undici'
import { backOffMs } from '../../platform/back-off.ts'
import { createBoundedAgent } from '../../platform/http/bounded-client.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { type LogSettings, uploadDefaults } from '../config/settings/logs.ts'
import type { LogOutput, LogReport } from './output.ts'

export interface LogUploadOptions {
  name: string
  settings: LogSettings
  metrics: Metrics
  report: LogReport
}

const compress = promisify(gzip)

/** For one POST as a whole, in ms. */
const timeoutMs = 10_000
/** What is left gets this long when the gateway stops, in ms. */
const lastChanceMs = 2_000
const retry = { first: 250, longest: 30_000, jitter: 0.25 }
/** Of an answer: its status is what counts. */
const maxAnswerBytes = 65_536
/** The longest `Retry-After` of a collector that is obeyed, in ms. */
const longestRetryAfterMs = 300_000

/** Statuses that are about what was sent: sending the same again is of no use. */
const aboutTheBatch = new Set([400, 413, 415, 422])

interface Line {
  text: string
  /** bytes */
  size: number
}

/**
 * Lines sent to a collector as OPA sends its decision logs: POSTs of a JSON array, gzipped. One at a time, so that they
 * arrive in order; repeated until the collector takes them or there is no room left, when the oldest go first.
 */
export const createLogUpload = ({ name, settings, metrics, report }: LogUploadOptions): LogOutput => {
  const { to: url, bufferSize } = settings
  const { token, batchSize, interval } = settings.http ?? uploadDefaults
  const dispatcher = createBoundedAgent({ connections: 1, keepAliveTimeout: 30_000, maxBodyBytes: maxAnswerBytes })
  const uploads = metrics.counter('surrogate_gateway_log_uploads_total', 'POSTs of log lines, by outcome', [
    'log',
    'outcome',
  ])
  const waitingBytes = metrics.gauge('surrogate_gateway_log_waiting_bytes', 'Log lines that are not uploaded yet', [
    'log',
  ])
  const stopCollecting = metrics.onCollect(() => waitingBytes.set({ log: name }, bytes))

  const lines: Line[] = []
  let bytes = 0
  /** How many of `lines` are in a POST now; they are not dropped. */
  let underWay = 0
  /** How many go into the next POST: fewer after the collector could not take a batch. */
  let atMost = Number.POSITIVE_INFINITY
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let closing = false

  /** Makes room in steps: removing lines one by one from a full buffer would cost every request the length of it. */
  const makeRoom = (size: number): void => {
    if (bytes + size <= bufferSize) return
    const wanted = bytes + size - bufferSize + bufferSize / 16
    let freed = 0
    let count = 0
    while (freed < wanted && underWay + count < lines.length) freed += lines[underWay + count++]!.size
    lines.splice(underWay, count)
    bytes -= freed
    if (count > 0) report.dropped(count)
  }

  const nextBatch = (): Line[] => {
    let size = 0
    let count = 0
    while (count < lines.length && count < atMost && (count === 0 || size + lines[count]!.size <= batchSize)) {
      size += lines[count++]!.size
    }
    return lines.slice(0, count)
  }

  const remove = (batch: readonly Line[]): void => {
    lines.splice(0, batch.length)
    for (const { size } of batch) bytes -= size
  }

  /** Sends one batch. Returns how long to wait before the next one, in ms. */
  const sendOne = async (): Promise<number> => {
    const batch = nextBatch()
    underWay = batch.length
    const outcome = await post(batch).finally(() => {
      underWay = 0
    })
    uploads.inc({ log: name, outcome: outcome.outcome })
    if (outcome.outcome === 'sent') {
      remove(batch)
      atMost *= 2
      failures = 0
      report.recovered()
      return 0
    }
    report.failed(outcome.error)
    if (outcome.outcome === 'refused') {
      if (batch.length > 1) {
        atMost = Math.ceil(batch.length / 2)
        return 0
      }
      remove(batch)
      report.dropped(1)
    }
    return Math.max(backOffMs(++failures, retry), outcome.retryAfter)
  }

  const post = async (batch: readonly Line[]): Promise<Outcome> => {
    try {
      const body = await compress(`[${batch.map(({ text }) => text).join(',')}]`)
      const answer = await request(url, {
        dispatcher,
        method: 'POST',
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          'content-type': 'application/json',
          'content-encoding': 'gzip',
          ...(token && { authorization: `Bearer ${token.reveal()}` }),
        },
        body,
      })
      const { statusCode: status, headers } = answer
      await answer.body.dump({ limit: maxAnswerBytes })
      if (status >= 200 && status < 300) return { outcome: 'sent' }
      const error = new Error(`the collector answered ${status}`)
      return {
        outcome: aboutTheBatch.has(status) ? 'refused' : 'failed',
        error,
        retryAfter: retryAfterMs(headers['retry-after']),
      }
    } catch (error) {
      return { outcome: 'failed', error, retryAfter: 0 }
    }
  }

  let wakeUp = (): void => {}
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const waiting = setTimeout(resolve, ms).unref()
      wakeUp = () => {
        clearTimeout(waiting)
        resolve()
      }
    })

  /** Sends until what is left may wait for more. */
  const drain = async (): Promise<void> => {
    while (lines.length > 0) {
      const wait = await sendOne()
      if (wait > 0 && closing) return
      if (wait > 0) await pause(wait)
      const urgent = closing || failures > 0 || bytes >= batchSize || lines.length > atMost
      if (!urgent) return
    }
  }

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    running ??= drain().finally(() => {
      running = undefined
      schedule()
    })
  }

  const schedule = (): void => {
    if (running || lines.length === 0 || closing) return
    if (bytes >= batchSize) flush()
    else timer ??= setTimeout(flush, interval).unref()
  }

  return {
    write(text) {
      if (closing) return
      const size = Buffer.byteLength(text) + 1
      makeRoom(size)
      if (bytes + size > bufferSize) return report.dropped(1)
      lines.push({ text, size })
      bytes += size
      schedule()
    },
    reopen() {},
    async close() {
      closing = true
      stopCollecting()
      const lastChance = setTimeout(() => void dispatcher.destroy(), lastChanceMs)
      wakeUp()
      await running
      flush()
      await running
      clearTimeout(lastChance)
      if (lines.length > 0) report.dropped(lines.length)
      lines.length = 0
      bytes = 0
      await dispatcher.destroy()
    },
  }
}

type Outcome =
  | { outcome: 'sent' }
  /** `refused`: it would be refused again. `retryAfter` in ms, 0 = as we like. */
  | { outcome: 'refused' | 'failed'; error: unknown; retryAfter: number }

/** RFC 9110 §10.2.3, in seconds; dates are left to our own schedule. */
const retryAfterMs = (header: string | string[] | undefined): number =>
  typeof header === 'string' && /^\d{1,9}$/.test(header) ? Math.min(Number(header) * 1000, longestRetryAfterMs) : 0
