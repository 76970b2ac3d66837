import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import type { ConfigOf } from '../../../deliveries/messages/factories.ts'
import type { AddressGuard } from '../../../platform/http/address-guard.ts'
import { TargetNotAllowed, type TargetPolicy } from '../../../platform/http/outbound.ts'
import { failure, networkErrorOf, type Outgoing, type Sender, type SendResult } from './sender.ts'

type SmtpConfig = ConfigOf<'simple-mail-transfer-protocol'>

/** Until the connection stands, until the server greets, and between its answers, in ms. */
const timeouts = { connectionTimeout: 5_000, greetingTimeout: 5_000, socketTimeout: 10_000 }

/** What an answer means, by the command that it answered. */
const resultOf = (error: unknown): SendResult => {
  const {
    responseCode,
    code,
    command = '',
  } = (error ?? {}) as {
    responseCode?: number
    code?: string
    command?: string
  }
  if (code === 'EAUTH' || code === 'ENOAUTH' || code === 'EOAUTH2') return failure('provider', 'authentication')
  if (code === 'ETLS' || command === 'STARTTLS') return failure('provider', 'tls')
  if (responseCode === undefined) {
    if (code === 'EENVELOPE') return failure('message', 'recipient')
    return failure('provider', networkErrorOf(error))
  }
  const category = `smtp_${responseCode}`
  // The service closes, or does not take mail from us: true of every message.
  if (responseCode === 421 || !/^(RCPT|DATA|BDAT|API)/i.test(command)) return failure('provider', category)
  return failure(responseCode >= 500 ? 'message' : 'later', category)
}

/** `Name <address>` or an address. */
const addressOf = (from: string): string => /<([^<>]+)>\s*$/.exec(from)?.[1] ?? from

export const createSmtpSender = (
  config: SmtpConfig,
  { policy, guard }: { policy: TargetPolicy; guard: AddressGuard },
): Sender => {
  const { host, port, secure = false, requireTLS = true, auth, tls, fromEmail, replyTo, maxConnections = 5 } = config
  const lookup: LookupFunction = (hostname, { all, family }, callback) => {
    policy.resolve(hostname).then(
      (addresses) => {
        const fitting = family ? addresses.filter((one) => one.family === family) : addresses
        const [first] = fitting
        if (first === undefined) {
          const missing = Object.assign(new Error(`The name ${hostname} has no address.`), { code: 'ENOTFOUND' })
          callback(missing, all ? [] : '', 0)
        } else if (all) callback(null, fitting)
        else callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, all ? [] : '', 0),
    )
  }
  /** Looked up, and held against what may be reached, at every connect. */
  const open = async (): Promise<Socket> => {
    const refused = isIP(host) === 0 ? undefined : guard.refusal(host)
    if (refused !== undefined) throw new TargetNotAllowed(`The address ${host} is not allowed: ${refused}.`)
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, lookup, autoSelectFamily: true })
      const late = () => socket.destroy(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }))
      socket.setTimeout(timeouts.connectionTimeout, late)
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        socket.off('timeout', late)
        socket.setTimeout(0)
        resolve(socket)
      })
    })
  }
  const servername = tls?.servername ?? (isIP(host) === 0 ? host : undefined)
  const transport = createTransport({
    pool: true,
    host,
    port,
    secure,
    requireTLS: !secure && requireTLS,
    ...(auth && { auth: { user: auth.user, pass: auth.pass } }),
    tls: { minVersion: 'TLSv1.2', ...(servername && { servername }), ...(tls?.ca && { ca: tls.ca }) },
    maxConnections,
    maxMessages: 1_000,
    // A connection that the server has closed meanwhile.
    maxRequeues: 1,
    ...timeouts,
    disableFileAccess: true,
    disableUrlAccess: true,
    logger: false,
    getSocket: (_options: unknown, callback: (error: Error | null, socket?: unknown) => void) => {
      open().then(
        (connection) => callback(null, { connection }),
        (error: Error) => callback(error),
      )
    },
  } as Parameters<typeof createTransport>[0])
  const close = () => (transport as unknown as { close(options: { force: boolean }): void }).close({ force: true })
  const sender = addressOf(fromEmail)
  const domain = sender.split('@').at(-1)

  return {
    async send(message: Outgoing, timeoutMs) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<SendResult>((resolve) => {
        timer = setTimeout(resolve, timeoutMs, failure('provider', 'timeout'))
      })
      const sending = transport
        .sendMail({
          from: fromEmail,
          to: { name: '', address: message.to },
          // One recipient, whatever stands in headers.
          envelope: { from: sender, to: [message.to] },
          ...(replyTo && { replyTo }),
          subject: message.subject,
          text: message.text,
          ...(message.html !== undefined && { html: message.html }),
          messageId: `<${message.id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
          disableFileAccess: true,
          disableUrlAccess: true,
        })
        .then((): SendResult => ({ sent: true }), resultOf)
      try {
        return await Promise.race([sending, late])
      } finally {
        clearTimeout(timer)
      }
    },
    close,
  }
}
