import { openLines, requireAppendable } from '../../platform/line-writer.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { LogSettings } from '../config/settings/logs.ts'
import { isUrl } from '../config/settings/values.ts'
import { createLogUpload } from './upload.ts'

/** Where lines of a log go. `write` never waits and never throws: what cannot be kept is dropped and counted. */
export interface LogOutput {
  write(line: string): void
  /**
   * Opens the file of that name anew, after somebody has moved the old one away; the old one stays in use when that
   * fails.
   */
  reopen(): void
  /** Writes what is waiting, as far as that is possible within a few seconds. */
  close(): Promise<void>
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

/** Throws `StartupError` when a file cannot be opened. */
export const openLog = (options: LogOutputOptions): LogOutput => {
  const { name, settings, logger, metrics } = options
  const report = createReport(name, logger, metrics)
  return isUrl(settings.to) ? createLogUpload({ name, settings, metrics, report }) : openFile(options, report)
}

/** How often the same trouble is logged at most, in ms. */
const repeatAfterMs = 10_000

const createReport = (log: string, logger: Logger, metrics: Metrics): LogReport => {
  const counter = metrics.counter(
    'surrogate_gateway_log_dropped_total',
    'Lines of the decision or access log that could not be kept',
    ['log'],
  )
  counter.inc({ log }, 0)
  let failing = false
  let total = 0
  let reportedAt = Number.NEGATIVE_INFINITY
  return {
    dropped(lines) {
      counter.inc({ log }, lines)
      total += lines
      if (performance.now() - reportedAt < repeatAfterMs) return
      reportedAt = performance.now()
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

const openFile = ({ name, settings, logger }: LogOutputOptions, report: LogReport): LogOutput => {
  const { to, bufferSize } = settings
  const lines = openOrRefuse(name, to, () =>
    openLines({ to, bufferSize, onError: report.failed, onWritten: report.recovered }),
  )
  return {
    write(line) {
      if (!lines.write(`${line}\n`)) report.dropped(1)
    },
    reopen() {
      try {
        lines.reopen()
      } catch (err) {
        logger.error({ log: name, file: to, err }, 'a log cannot be opened anew; the file that was open stays in use')
      }
    },
    close: lines.close,
  }
}

/** Throws `StartupError` for a log file that could not be opened now. Makes nothing; addresses are not asked. */
export const requireLog = (name: string, { to }: LogSettings): void => {
  if (to !== 'stdout' && !isUrl(to)) openOrRefuse(name, to, () => requireAppendable(to))
}

const openOrRefuse = <Opened>(name: string, file: string, open: () => Opened): Opened => {
  try {
    return open()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new StartupError(`The ${name} log cannot be opened: ${file} (${code})`, {
      hint: hints[code!] ?? `Name a file that the gateway may write, with ${name}Log.to.`,
      cause,
    })
  }
}

const hints: Record<string, string> = { ENXIO: 'It is a pipe that nobody reads: start its reader first.' }
