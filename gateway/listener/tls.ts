import { constants, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { SecureContextOptions, Server, TlsOptions } from 'node:tls'
import { statesOf, textOf } from '../../platform/file-states.ts'
import type { HealthResult } from '../../platform/health.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { TlsSettings } from '../config/settings/listen.ts'
import { type Certificate, readAuthorities, readCertificate, requireUnexpired } from './certificates.ts'
import { contextsOf } from './contexts.ts'

/** The certificates of the public listener, chosen by name and read again when their files change. */
export interface ListenerTls {
  /** For the server. */
  readonly options: TlsOptions
  /** From now on the server gets what the files say, for connections that begin then. */
  follow(server: Pick<Server, 'setSecureContext'>): void
  /** For `/readyz`: always ok, since a good pair is in use; the detail tells which files are not. */
  status(): HealthResult
  close(): Promise<void>
}

/** As of the configuration, see `reload.ts`. In ms. */
const checkInterval = 250

/** Within so many ms of its end a certificate is warned about, once a day. */
const expirySoon = 14 * 86_400_000
const warnEvery = 86_400_000

/**
 * Those with forward secrecy and authenticated encryption (RFC 9325 §4.2). HTTP/2 takes no others (RFC 9113 §9.2.2).
 */
const ciphers = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':')

/** What session tickets are sealed with, from now to the end of the process. */
export const newTicketKeys = (): Buffer<ArrayBuffer> => randomBytes(48)

/** Throws `StartupError` for files that cannot be used. */
export const openTls = async (options: {
  settings: TlsSettings
  /** Also HTTP/2. */
  http2: boolean
  /** In ms. */
  handshakeTimeout: number
  /** Default: new ones. */
  ticketKeys?: Buffer | undefined
  logger: Logger
  metrics: Metrics
}): Promise<ListenerTls> => {
  const { settings, http2, handshakeTimeout, ticketKeys = newTicketKeys(), logger, metrics } = options
  const expiry = metrics.gauge(
    'surrogate_gateway_certificate_expiry_seconds',
    'When a certificate of the listener expires, in seconds since 1970',
    ['certificate'],
  )
  const reloads = metrics.counter(
    'surrogate_gateway_certificate_reloads_total',
    'Changed files of certificates that were read',
    ['outcome'],
  )
  const stale = metrics.gauge(
    'surrogate_gateway_certificates_stale',
    'Listeners of which a file of a certificate says something else than what is in use',
  )
  let isStale = 0
  const tellStale = (now: number) => {
    stale.inc(now - isStale)
    isStale = now
  }
  tellStale(0)

  const { clientCa } = settings
  const certificates = await Promise.all(settings.certificates.map(readCertificate))
  let authorities = clientCa === undefined ? undefined : await readAuthorities(clientCa)
  /** By file: why its content is not in use. */
  const problems = new Map<string, string>()

  const contextOptions = ({ cert, key }: Certificate): SecureContextOptions => ({
    cert,
    key,
    ...(authorities !== undefined && { ca: authorities }),
    minVersion: `TLSv${settings.minVersion}`,
    ciphers,
    ticketKeys,
    // Each client certificate is verified when its connection begins, by the authorities of then.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (clientCa === undefined ? 0 : constants.SSL_OP_NO_TICKET),
  })
  let contexts = contextsOf(certificates, contextOptions)
  const tellUnused = () => {
    for (const one of contexts.unused) logger.warn(one, 'a certificate is not used for a name that another one has')
  }
  tellUnused()

  const tellExpiry = () => {
    const now = Date.now()
    for (const { files, notAfter } of certificates) {
      expiry.set({ certificate: files.cert }, Math.floor(notAfter / 1_000))
      if (notAfter - now > expirySoon) continue
      const told = { certificate: files.cert, expires: new Date(notAfter).toISOString() }
      if (notAfter <= now) logger.error(told, 'a certificate of the listener has expired')
      else logger.warn(told, 'a certificate of the listener expires soon')
    }
  }
  tellExpiry()

  /** Reads a file or a pair again; whether it may be used now. */
  const attempt = async (file: string, read: () => Promise<boolean>): Promise<boolean> => {
    try {
      const changed = await read()
      problems.delete(file)
      if (changed) reloads.inc({ outcome: 'ok' })
      return changed
    } catch (error) {
      const { message } = error as Error
      problems.set(file, message)
      reloads.inc({ outcome: 'refused' })
      logger.error({ file, problem: message }, 'a certificate was not replaced; the one before stays in use')
      return false
    }
  }
  const readAgain = async (server: Pick<Server, 'setSecureContext'>) => {
    const pairs = certificates.map(({ files }, index) =>
      attempt(files.cert, async () => {
        const next = await readCertificate(files)
        const before = certificates[index]!
        if (next.cert === before.cert && next.key === before.key) return false
        requireUnexpired(next, Date.now())
        certificates[index] = next
        return true
      }),
    )
    if (clientCa !== undefined) {
      const next = attempt(clientCa, async () => {
        const pem = await readAuthorities(clientCa)
        const changed = pem !== authorities
        authorities = pem
        return changed
      })
      pairs.push(next)
    }
    const changed = await Promise.all(pairs)
    tellStale(problems.size > 0 ? 1 : 0)
    if (!changed.includes(true)) return
    contexts = contextsOf(certificates, contextOptions)
    server.setSecureContext(contextOptions(certificates[0]!))
    tellUnused()
    tellExpiry()
    logger.info({ certificates: certificates.map(({ files }) => files.cert) }, 'the certificates were reloaded')
  }

  const stop = new AbortController()
  const files = [...settings.certificates.flatMap(({ cert, key }) => [cert, key]), ...(clientCa ? [clientCa] : [])]
  const watch = async (server: Pick<Server, 'setSecureContext'>) => {
    let seen = ''
    let before = ''
    let told = Date.now()
    while (!stop.signal.aborted) {
      const now = textOf(await statesOf(files))
      const settled = now === before
      before = now
      // Also the first time: a file may have changed between reading and following.
      if (settled && now !== seen && !stop.signal.aborted) {
        seen = now
        await readAgain(server)
      }
      if (Date.now() - told >= warnEvery) {
        told = Date.now()
        tellExpiry()
      }
      await delay(checkInterval, undefined, { signal: stop.signal, ref: false }).catch(() => {})
    }
  }
  let watching: Promise<void> | undefined

  return {
    options: {
      ...contextOptions(certificates[0]!),
      ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      SNICallback: (name, callback) => callback(null, contexts.find(name)),
      handshakeTimeout,
      // A certificate that was not verified is refused once the handshake is over: see `accept-tls.ts`.
      requestCert: clientCa !== undefined,
      rejectUnauthorized: false,
    },
    follow(server) {
      watching ??= watch(server)
    },
    status: () => ({ ok: true, detail: [...problems.values()].join(' ') || 'as in their files' }),
    async close() {
      stop.abort()
      await watching
      tellStale(0)
    },
  }
}
