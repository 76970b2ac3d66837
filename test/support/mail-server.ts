import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface ReceivedMail {
  from: string
  /** Of the envelope. */
  to: string[]
  /** Headers and body as they came. */
  raw: string
  /** When it had arrived, as `performance.now()` says. */
  at: number
}

export interface MailServer {
  port: number
  received: ReceivedMail[]
  /** Until so many have arrived; the test's time limit ends the wait. */
  until(count: number): Promise<ReceivedMail[]>
  close(): Promise<void>
}

/** An SMTP server on 127.0.0.1 that keeps what it takes. `onData` may refuse, or keep waiting. */
export const startMailServer = async (
  options: SMTPServerOptions & { refuse?: (mail: ReceivedMail, count: number) => Error | undefined } = {},
): Promise<MailServer> => {
  const { refuse, ...own } = options
  const received: ReceivedMail[] = []
  let tried = 0
  let heard = () => {}
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: own.secure || own.key ? [] : ['STARTTLS'],
    logger: false,
    closeTimeout: 100,
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const mail = {
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString('utf8'),
          at: performance.now(),
        }
        tried++
        const refused = refuse?.(mail, tried)
        if (refused) return done(refused)
        received.push(mail)
        heard()
        done()
      })
    },
    ...own,
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    async until(count) {
      while (received.length < count)
        await new Promise<void>((resolve) => {
          heard = resolve
        })
      return received
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

/** An SMTP answer. */
export const smtpError = (responseCode: number, message = 'no'): Error =>
  Object.assign(new Error(message), { responseCode })

/** The parts of a mail with their encodings undone. */
export const textsOf = (raw: string): { headers: string; text: string; html: string } => {
  const [headers = ''] = raw.split('\r\n\r\n', 1)
  const part = (type: string) => {
    const pattern = new RegExp(`Content-Type: ${type}[\\s\\S]*?\\r\\n\\r\\n([\\s\\S]*?)(?=\\r\\n--|$)`, 'i')
    const head = new RegExp(`Content-Type: ${type}[\\s\\S]*?\\r\\n\\r\\n`, 'i').exec(raw)?.[0] ?? ''
    const body = pattern.exec(raw)?.[1] ?? ''
    if (/quoted-printable/i.test(head))
      return Buffer.from(
        body
          .replace(/=\r\n/g, '')
          .replace(/=([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
        'latin1',
      ).toString('utf8')
    return /base64/i.test(head) ? Buffer.from(body, 'base64').toString('utf8') : body
  }
  return { headers: headers.replace(/\r\n[ \t]+/g, ' '), text: part('text/plain'), html: part('text/html') }
}
