import type { IncomingMessage } from 'node:http'
import { readWhole } from '../../platform/http/read-whole.ts'
import { AppError } from '../../platform/problem.ts'
import { problem } from './errors/problems.ts'

/**
 * The JSON of a request body; an absent body is `{}`. Read after authentication, so that strangers cannot make us read.
 * Throws 400 `guard.invalid_json` and `guard.invalid_input`, 413 `guard.body_too_large`, 415
 * `guard.unsupported_media_type`. `limit`: bytes, by default 1 MB.
 */
export const readJson = async (request: IncomingMessage, { limit = bodyLimit } = {}): Promise<unknown> => {
  const bytes = await readBytes(request, limit)
  if (bytes.length === 0) return {}
  if (!isJson(request.headers['content-type'])) {
    throw problem('guard.unsupported_media_type', { detail: 'Send application/json.' })
  }
  const body = parseJson(bytes)
  refuseUnstorable(body, 'body')
  return body
}

/** A form (`application/x-www-form-urlencoded`), where a browser can send nothing else. Throws as `readJson` does. */
export const readFormBody = async (
  request: IncomingMessage,
  { limit = bodyLimit } = {},
): Promise<Record<string, string>> => {
  const fields = Object.fromEntries(new URLSearchParams(utf8.decode(await readBytes(request, limit))))
  refuseUnstorable(fields, 'body')
  return fields
}

/** Bytes of a request body: 1 MB. */
const bodyLimit = 1_048_576
/** Nesting of a JSON body; deeper ones would only serve to exhaust a stack. */
const maxDepth = 64

const readBytes = async (request: IncomingMessage, limit: number): Promise<Buffer> => {
  // The connection is closed after the answer: what is left of the body is not worth reading.
  const tooLarge = () => problem('guard.body_too_large', { headers: { Connection: 'close' } })
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = request.headers
  if (encoding !== 'identity') {
    throw problem('guard.unsupported_media_type', { detail: 'Send the body without content encoding.' })
  }
  if (Number(length) > limit) throw tooLarge()
  try {
    return await readWhole(request.iterator({ destroyOnReturn: false }), limit, tooLarge)
  } catch (error) {
    if (error instanceof AppError) throw error
    throw problem('guard.invalid_input', { detail: 'The body ended before it was complete.', cause: error })
  }
}

/** RFC 8259 §8.1: JSON is UTF-8, so another charset is refused instead of guessed at. */
const isJson = (contentType = '') => {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  return type === 'application/json' && parameters.every((text) => text === '' || /^charset="?utf-8"?$/.test(text))
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const parseJson = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw problem('guard.invalid_json', { cause })
  }
}

// Postgres keeps each digit of a number, so that `1e308`, five characters, would be 309 when it is read. Beyond `1e308`
// is Infinity.
const isStorable = (number: number) => number === 0 || (Math.abs(number) <= 1e100 && Math.abs(number) >= 1e-100)

/**
 * Throws 400 when a text somewhere in `value` holds NUL or an unpaired surrogate, which Postgres cannot store, when a
 * number is extreme, or when it nests too deep.
 */
export const refuseUnstorable = (value: unknown, path: string, depth = 0): void => {
  if (typeof value === 'number' && !isStorable(value)) {
    throw problem('guard.invalid_input', { detail: `${path}: numbers must lie between 1e-100 and 1e100` })
  }
  if (typeof value === 'string') {
    if (!value.includes('\u0000') && value.isWellFormed()) return
    throw problem('guard.invalid_input', { detail: `${path}: must not contain NUL or unpaired surrogates` })
  }
  if (typeof value !== 'object' || value === null) return
  if (depth >= maxDepth) {
    throw problem('guard.invalid_input', { detail: `The input is nested deeper than ${maxDepth} levels.` })
  }
  for (const [name, member] of Object.entries(value)) {
    refuseUnstorable(name, path, depth + 1)
    refuseUnstorable(member, path, depth + 1)
  }
}
