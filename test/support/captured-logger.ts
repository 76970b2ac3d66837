import { createLogger, type Logger } from '../../platform/logger.ts'

/** A real logger whose lines can be looked at. */
export const capturedLogger = (level = 'info'): { logger: Logger; lines: Record<string, unknown>[] } => {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  return { logger: createLogger({ name: 'test', level, destination }), lines }
}
