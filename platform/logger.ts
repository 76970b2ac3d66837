import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino'
import { openLines } from './line-writer.ts'

export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'level'>

/**
 * Members that hold credentials wherever they appear in a logged object; a second net, the first is not to log them.
 */
const credentials = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'client_secret',
  'clientSecret',
  'access_token',
  'accessToken',
  'subject_token',
  'subjectToken',
  'actor_token',
  'signingKey',
  'webhookSecret',
  'token',
]

/**
 * Bytes that wait while nobody reads stdout; more are dropped: a log never takes all memory, nor holds up what it tells
 * about.
 */
const bufferSize = 16_777_216

/**
 * JSON lines to stdout (or `destination`), `name` in each. Levels as pino: trace debug info warn error fatal silent.
 */
export const createLogger = (options: {
  name: string
  level: string
  destination?: Pick<DestinationStream, 'write'>
}): Logger =>
  pino(
    {
      name: options.name,
      level: options.level,
      redact: {
        paths: credentials.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.headers["${name}"]`]),
        censor: '[redacted]',
      },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    options.destination ?? openLines({ to: 'stdout', bufferSize }),
  )

/** Kinds of lines that are remembered, at most; then it begins anew. */
const mostKinds = 1_000
const throttleMs = 1_000
const lastLines = new WeakMap<Logger, Map<string, number>>()

/**
 * The level of a line that callers cause as often as they like, so that nobody can fill the log: `level` for one line
 * of a kind in a second, `debug` for the others.
 */
export const throttledLevel = <Level extends 'warn' | 'error'>(
  logger: Logger,
  level: Level,
  kind: string,
): Level | 'debug' => {
  const last = lastLines.get(logger) ?? new Map<string, number>()
  lastLines.set(logger, last)
  const now = performance.now()
  if (now - (last.get(kind) ?? Number.NEGATIVE_INFINITY) < throttleMs) return 'debug'
  if (last.size >= mostKinds) last.clear()
  last.set(kind, now)
  return level
}

export const silentLogger: Logger = pino({ level: 'silent' })
