import { request } from 'undici'
import { createBoundedAgent } from '../platform/http/bounded-client.ts'
import { readWhole } from '../platform/http/read-whole.ts'
import type { Secret } from '../platform/secret.ts'
import { PolicyError } from './engine/index.ts'

/** A bundle on a server, asked for again and again. */
export interface BundleDownload {
  /**
   * The bytes when they are others than the last ones that were returned, else undefined. Throws `PolicyError` that
   * says what came.
   */
  next(): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

/** The whole request, in ms, and the compressed bundle, in bytes. */
const timeoutMs = 30_000
const maxBytes = 33_554_432

/**
 * Asks with the ETag of what came last, so that an unchanged bundle costs one short answer. Redirects are not followed:
 * who could redirect the rules could replace them.
 * @param token sent as bearer token (RFC 6750 §2.1).
 */
export const bundleDownload = ({ url, token }: { url: string; token?: Secret | undefined }): BundleDownload => {
  const dispatcher = createBoundedAgent({ connections: 1, keepAliveTimeout: 1_000, maxBodyBytes: 2 * maxBytes })
  const closing = new AbortController()
  let etag: string | undefined

  const get = async (): Promise<Uint8Array | undefined> => {
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), closing.signal])
    const headers = {
      accept: 'application/gzip, application/octet-stream',
      ...(etag !== undefined && { 'if-none-match': etag }),
      ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
    }
    const answer = await request(url, { dispatcher, signal, headers })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy()
      if (answer.statusCode === 304 && etag !== undefined) return undefined
      throw new PolicyError(`${url} answered ${answer.statusCode}`)
    }
    const tooLarge = () => new PolicyError(`${url}: the bundle is larger than ${maxBytes} bytes`)
    const bundle = await readWhole(answer.body, maxBytes, tooLarge)
    // Remembered whatever becomes of these bytes: a bundle that cannot be used is not fetched again until there is
    // another one.
    const header = answer.headers['etag']
    etag = Array.isArray(header) ? header[0] : header
    return bundle
  }

  return {
    async next() {
      try {
        return await get()
      } catch (cause) {
        if (cause instanceof PolicyError) throw cause
        const { name, message, code } = cause as Error & { code?: string }
        const why = name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : (code ?? message)
        throw new PolicyError(`${url}: ${why}`, { cause })
      }
    },
    async close() {
      closing.abort()
      await dispatcher.destroy()
    },
  }
}
