import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createLogUpload, lastChanceMs, type UploadSettings } from './log-upload.ts'

/** Where lines of a log go. `write` never waits and never throws: what cannot be kept is dropped and counted. */
export interface LogOutput {
  write(line: string): void
  /** Opens the file of that name anew, after somebody has moved the old one away. Without effect for the others. */
  reopen(): void
  /** Writes what is waiting, as far as that is possible within a few seconds. */
  close(): Promise<void>
}

export interface LogSettings {
  /** `stdout`, a file that lines are appended to, or a URL. */
  to: string
  /** Bytes waiting to be written beyond which lines are dropped. */
  bufferSize: number
  http?: UploadSettings | undefined
}

export interface LogOutputOptions {
  /** In metrics and messages: `decision`, `access`. */
  name: string
  settings: LogSettings
  logger: Logger
  metrics: Metrics
}

/** What an output tells about itself. */
export interface LogReport {
  dropped(lines: number): void
  failed(error: unknown): void
  recovered(): void
}

export const isUrl = (to: string): boolean => /^https?:/i.test(to)

export const openLog = ({ name, settings, logger, metrics }: LogOutputOptions): LogOutput => {
  const report = createReport(name, logger, metrics)
  return isUrl(settings.to) ? createLogUpload({ name, settings, metrics, report }) : openFile(settings, report)
}

/** How often the same trouble is logged at most, in ms. */
const sayAgainAfter = 10_000

const createReport = (log: string, logger: Logger, metrics: Metrics): LogReport => {
  const counter = metrics.counter(
    'surrogate_gateway_log_dropped_total',
    'Lines of the decision or access log that could not be kept',
    ['log'],
  )
  counter.inc({ log }, 0)
  let failing = false
  let total = 0
  let saidAt = Number.NEGATIVE_INFINITY
  return {
    dropped(lines) {
      counter.inc({ log }, lines)
      total += lines
      if (performance.now() - saidAt < sayAgainAfter) return
      saidAt = performance.now()
      logger.error({ log, dropped: total }, 'lines of a log are dropped: they cannot be written fast enough')
    },
    failed(error) {
      if (!failing)
        logger.error({ log, err: error }, 'a log cannot be written; its lines are kept as long as there is room')
      failing = true
    },
    recovered() {
      if (failing) logger.info({ log }, 'a log is written again')
      failing = false
    },
  }
}

/** Readable for the owner and their group: the lines tell who did what. */
const fileMode = 0o640

const openFile = ({ to, bufferSize }: LogSettings, report: LogReport): LogOutput => {
  const dest = to === 'stdout' ? 1 : to
  const out = pino.destination({ dest, sync: false, mkdir: true, append: true, maxLength: bufferSize, mode: fileMode })
  let opened = false
  let unusable = false
  let closed = false
  out.on('ready', () => {
    opened = true
  })
  out.on('drop', () => report.dropped(1))
  out.on('drain', () => report.recovered())
  out.on('error', (error: Error) => {
    unusable = !opened
    report.failed(error)
  })
  return {
    write(line) {
      if (!closed) out.write(`${line}\n`)
    },
    reopen() {
      if (!closed && to !== 'stdout') out.reopen()
    },
    async close() {
      closed = true
      if (unusable) return
      const ended = new Promise<false>((resolve) => {
        for (const event of ['close', 'error']) out.once(event, () => resolve(false))
      })
      out.end()
      // A pipe that nobody reads would keep the gateway from stopping.
      const late = await Promise.race([ended, delay(lastChanceMs, true, { ref: false })])
      if (late) out.destroy()
    },
  }
}
