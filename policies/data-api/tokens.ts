import { timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { statesOf, textOf } from '../../platform/file-states.ts'
import type { Logger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'

/** Who may ask: the bearer tokens of a file, followed as it changes. */
export interface Tokens {
  /** @param authorization the header field; undefined when there is none, or several. */
  allow(authorization: string | undefined): boolean
  close(): Promise<void>
}

/** In ms. */
const checkInterval = 250
/** Shorter ones could be guessed. Characters. */
const shortest = 16
/** As in OPA. */
const longestField = 8_192

/**
 * One token a line; empty lines and those that begin with `#` do not count. Throws `StartupError` when there is none. A
 * file that is later emptied lets nobody in; one that cannot be read changes nothing.
 */
export const followTokens = async (file: string, logger: Logger): Promise<Tokens> => {
  let seen = textOf(await statesOf([file]))
  let hashes = await readTokens(file).catch((cause: NodeJS.ErrnoException) => {
    throw new StartupError(`The token file ${file} cannot be read (${cause.code}).`, { hint, cause })
  })
  if (hashes.length === 0)
    throw new StartupError(`The token file ${file} holds no token of ${shortest} characters.`, { hint })

  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await delay(checkInterval, undefined, { signal: stop.signal, ref: false }).catch(() => {})
      const state = textOf(await statesOf([file]))
      if (stop.signal.aborted || state === seen) continue
      seen = state
      try {
        hashes = await readTokens(file)
        logger.info({ file, count: hashes.length }, 'tokens read again')
        if (hashes.length === 0) logger.error({ file }, 'the file holds no token: nobody is let in')
      } catch (err) {
        logger.error({ file, err }, 'tokens not read again; the last ones stay good')
      }
    }
  }
  const following = follow()

  return {
    allow(authorization) {
      if (authorization === undefined || authorization.length > longestField) return false
      const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
      if (token === undefined) return false
      const presented = sha256(token)
      // All of them are compared, whichever fits.
      let allowed = false
      for (const known of hashes) if (timingSafeEqual(known, presented)) allowed = true
      return allowed
    },
    async close() {
      stop.abort()
      await following
    },
  }
}

const hint = 'Write one token a line, such as openssl rand -hex 32 makes.'

const readTokens = async (file: string): Promise<Buffer[]> =>
  (await readFile(file, 'utf8'))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= shortest && !line.startsWith('#') && !/\s/.test(line))
    .map(sha256)
