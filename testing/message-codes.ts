import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { SignInFailed } from './step.ts'

/** In ms. */
const patience = 20_000
const pause = 200

const line = z.object({ at: z.coerce.date(), to: z.string(), code: z.string() })

export interface MessageCodes {
  /** The mail address or telephone number of one person, for tests that run at the same time. Default: any. */
  to?: string | undefined
  /** Default: now. */
  since?: Date | undefined
}

/**
 * Codes out of the file that messages of development go to (`MESSAGE_OUTBOX`): each time the newest that came after
 * `since` and was not answered before.
 */
export const codesFrom = (file: string, { to, since = new Date() }: MessageCodes = {}): (() => Promise<string>) => {
  const isMeant = (one: string) => to === undefined || sameAs(one) === sameAs(to)
  let after = since
  return async () => {
    for (let waited = 0; waited < patience; waited += pause) {
      const newest = (await linesOf(file)).findLast((one) => one.at >= after && isMeant(one.to))
      if (newest) {
        after = new Date(newest.at.getTime() + 1)
        return newest.code
      }
      await delay(pause)
    }
    const whose = to === undefined ? '' : ` for ${to}`
    throw new SignInFailed(`No code${whose} came to ${file} within ${patience / 1_000} seconds. Is a relay running?`)
  }
}

/** Numbers are written with a plus sign, spaces or neither. */
const sameAs = (address: string): string =>
  address.includes('@') ? address.normalize('NFKC').toLowerCase() : address.replace(/\D/g, '')

const linesOf = async (file: string): Promise<z.output<typeof line>[]> => {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // It is made with the first message.
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return text.split('\n').flatMap((one) => {
    const read = line.safeParse(parsed(one))
    return read.success ? [read.data] : []
  })
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // The last line may not be whole yet.
    return undefined
  }
}
