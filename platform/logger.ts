import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino'
import { openLines } from './line-writer.ts'

export type Logger = Pick<PinoLogger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'level'>

/** Members that hold credentials wherever they appear in a logged object; a second net, the first is not to log them. */
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

/** Bytes that wait while nobody reads stdout; more are dropped: a log never takes all memory, nor holds up what it tells about. */
const bufferSize = 16_777_216

/** JSON lines to stdout (or `destination`), `name` in each. Levels as pino: trace debug info warn error fatal silent. */
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

export const silentLogger: Logger = pino({ level: 'silent' })
