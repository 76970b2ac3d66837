import type { Dispatcher } from 'undici'

/** One POST to a receiver and what came of it. Never throws: whatever goes wrong is the result. */
export interface AttemptResult {
  /** Only 2xx. Status line and headers decide; the body is read for the log. */
  succeeded: boolean
  status: number | null
  headers: Record<string, string> | null
  /** Its first 16 kB, as received (not decompressed). */
  body: Buffer | null
  /** For people: why it failed. */
  error: string | null
  address: string | null
  durationMs: number
}

export interface AttemptRequest {
  dispatcher: Dispatcher
  url: URL
  headers: Record<string, string>
  body: Buffer
  /** For the whole exchange, connecting and a dripping body included, in ms. */
  timeoutMs: number
  /** Ends the attempt early, as a failure. */
  signal?: AbortSignal
}

export const maxResponseBytes = 16_384

export const attempt = async (request: AttemptRequest): Promise<AttemptResult> => {
  const started = performance.now()
  const result: AttemptResult = {
    succeeded: false,
    status: null,
    headers: null,
    body: null,
    error: null,
    address: null,
    durationMs: 0,
  }
  const deadline = AbortSignal.timeout(request.timeoutMs)
  try {
    const { statusCode, headers, body } = await request.dispatcher.request({
      origin: request.url.origin,
      path: request.url.pathname + request.url.search,
      method: 'POST',
      headers: request.headers,
      body: request.body,
      signal: request.signal ? AbortSignal.any([deadline, request.signal]) : deadline,
      // The deadline is the only clock: undici's own are per phase, and the one for bodies starts over with every byte.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    result.status = statusCode
    result.headers = loggedHeaders(headers)
    result.succeeded = statusCode >= 200 && statusCode < 300
    if (!result.succeeded) result.error = `The receiver answered ${statusCode}.`
    result.body = await firstBytes(body)
  } catch (error) {
    if (result.status === null) result.error = reasonOf(error, deadline, request)
  }
  result.durationMs = Math.round(performance.now() - started)
  return result
}

/** Reads at most 16 kB; what comes later, or never, is dropped with its connection. */
const firstBytes = async (body: Dispatcher.ResponseData['body']): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      // Leaving the loop destroys the stream.
      if (size > maxResponseBytes) break
    }
  } catch {
    // The deadline or a broken connection; the status has decided already.
  }
  return Buffer.concat(chunks).subarray(0, maxResponseBytes)
}

// What a receiver may carelessly send back: credentials.
const redacted = new Set([
  'set-cookie',
  'authorization',
  'proxy-authenticate',
  'www-authenticate',
  'authentication-info',
])
const maxHeaders = 64

/** Header values are text of the receiver's: without NUL (Postgres cannot hold it), and `location` without its query and userinfo. */
const loggedHeaders = (headers: Record<string, string | string[] | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .slice(0, maxHeaders)
      .map(([name, value]) => {
        const text = (Array.isArray(value) ? value.join(', ') : (value ?? '')).replaceAll('\u0000', '').toWellFormed()
        if (redacted.has(name)) return [name, '[redacted]']
        return [name, name === 'location' ? plainLocation(text) : text.slice(0, 1_024)]
      }),
  )

const plainLocation = (text: string) => {
  if (!URL.canParse(text, 'https://relative.invalid')) return '[unreadable]'
  const url = new URL(text, 'https://relative.invalid')
  return url.hostname === 'relative.invalid' ? url.pathname : url.origin + url.pathname
}

/** Sentences for what happens often; the rest by its code only, since messages of others may quote anything. */
const reasons: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was closed without an answer.',
  UND_ERR_SOCKET: 'The connection was closed without an answer.',
  EPIPE: 'The connection was closed without an answer.',
  ENOTFOUND: 'The host name does not resolve.',
  EAI_AGAIN: 'The host name could not be resolved just now.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The network cannot be reached.',
  ETIMEDOUT: 'The connection took too long.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection took too long.',
  HTTPParserError: 'The answer is not HTTP.',
  UND_ERR_HEADERS_OVERFLOW: 'The answer has too many or too large header fields.',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is not trusted: self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The certificate is not trusted: self-signed.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate is not trusted: its issuer is unknown.',
  CERT_HAS_EXPIRED: 'The certificate has expired.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate is for another host.',
}

const reasonOf = (error: unknown, deadline: AbortSignal, { timeoutMs, signal }: AttemptRequest): string => {
  if (deadline.aborted) return `There was no answer within ${timeoutMs} ms.`
  if (signal?.aborted) return 'The attempt was broken off.'
  const { code, name, message } = error as NodeJS.ErrnoException
  if (code === 'TARGET_NOT_ALLOWED') return message
  return reasons[code ?? name] ?? `The request failed (${code ?? 'unknown reason'}).`
}
