import { open, stat } from 'node:fs/promises'
import { z } from 'zod'
import { pause } from '../../platform/wake-up.ts'

/** The file that takes messages where no connector is configured: one JSON object on every line. */

const line = z.object({
  at: z.string(),
  channel: z.string(),
  to: z.string(),
  type: z.string(),
  subject: z.string(),
  text: z.string(),
})

// A name in a message may hold what moves a terminal's cursor.
const unseen = /(?!\n)[\p{Cc}\p{Cf}]/gu

/** A message for people, at a terminal. */
const readable = (text: string): string => {
  const parsed = line.safeParse(parseJson(text))
  if (!parsed.success) return ''
  const { at, channel, to, type, subject, text: body } = parsed.data
  const head = [`── ${type} by ${channel} to ${to}, ${at}`, ...(channel === 'email' ? [`   ${subject}`] : [])]
  const lines = [
    ...head,
    ...body
      .trimEnd()
      .split('\n')
      .map((part) => `   ${part}`),
  ]
  return `${lines.join('\n').replace(unseen, '')}\n`
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  )

/** The whole lines from a place on, and the place behind them. */
const readFrom = async (file: string, from: number, size: number): Promise<{ lines: string[]; next: number }> => {
  const handle = await open(file, 'r')
  try {
    const bytes = Buffer.alloc(size - from)
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, from)
    const end = bytes.subarray(0, bytesRead).lastIndexOf(0x0a) + 1
    const text = bytes.subarray(0, end).toString('utf8')
    return { lines: text.split('\n').filter((one) => one !== ''), next: from + end }
  } finally {
    await handle.close()
  }
}

const pollMs = 200

/** Prints what is in the file from `from` on; `follow`: and what comes, until the signal. */
export const printOutbox = async (
  file: string,
  options: { from: number; follow: boolean; print: (text: string) => void; signal: AbortSignal },
): Promise<void> => {
  let { from } = options
  do {
    const size = await sizeOf(file)
    // It was emptied.
    if (size < from) from = 0
    if (size > from) {
      const { lines, next } = await readFrom(file, from, size)
      for (const text of lines.map(readable)) if (text !== '') options.print(text)
      from = next
    }
    if (options.follow) await pause(pollMs, options.signal)
  } while (options.follow && !options.signal.aborted)
}

/** Prints what comes from now on; `stop` waits for what is being printed. */
export const followOutbox = async (file: string, print: (text: string) => void): Promise<{ stop(): Promise<void> }> => {
  const stopping = new AbortController()
  const from = await sizeOf(file)
  // A file that cannot be read is not worth more than its messages.
  const ended = printOutbox(file, { from, follow: true, print, signal: stopping.signal }).catch(() => {})
  return {
    async stop() {
      stopping.abort()
      await ended
    },
  }
}
