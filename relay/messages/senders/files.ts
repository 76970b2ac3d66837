import { appendFile, mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Template } from '../../../deliveries/messages/factories.ts'
import type { Channel } from '../../../deliveries/messages/message.ts'
import { failure, type Outgoing, type Sender, type SendResult } from './sender.ts'

/** Messages that go to files: for development, and for tests of existing clients. */

const readable = { mode: 0o600 }

const createFileSender = (write: (message: Outgoing) => Promise<void>): Sender => {
  // One after the other, so that lines stay whole.
  let last: Promise<unknown> = Promise.resolve()
  return {
    send(message) {
      const written = last.then(() => write(message))
      last = written.catch(() => {})
      return written.then(
        (): SendResult => ({ sent: true }),
        () => failure('provider', 'file'),
      )
    },
    close() {},
  }
}

/** Every message is a line of a file that `surrogate messages` prints. */
export const createOutboxSender = (file: string, channel: Channel): Sender =>
  createFileSender(async ({ to, type, subject, text, variables }) => {
    await mkdir(dirname(file), { recursive: true })
    const code = variables['code']
    const line = { at: new Date().toISOString(), channel, to, type, subject, text, ...(code && { code }) }
    await appendFile(file, `${JSON.stringify(line)}\n`, readable)
  })

const filled = (text: string, variables: Readonly<Record<string, string>>): string =>
  text.replace(/\{\{\s*(\w+)\s*\}\}/g, (whole, name: string) => variables[name] ?? whole)

/** What existing tests look for: the last message of the channel in one file, and all of them as lines of another. */
export const createMockSender = (folder: string, channel: Channel, templates: readonly Template[]): Sender =>
  createFileSender(async (message) => {
    const { to, usage, variables, subject, text } = message
    const template =
      templates.find(({ usageType }) => usageType === usage) ??
      templates.find(({ usageType }) => usageType === 'Generic' && usage !== 'Notice')
    const common = { code: variables['code'], type: usage, payload: variables }
    const record =
      channel === 'sms'
        ? { phone: to, ...common, content: template ? filled(template.content, variables) : text }
        : {
            address: to,
            ...common,
            template,
            subject: template?.subject === undefined ? subject : filled(template.subject, variables),
            content: template ? filled(template.content, variables) : text,
          }
    const line = `${JSON.stringify(record)}\n`
    await mkdir(folder, { recursive: true })
    const file = join(folder, channel === 'sms' ? 'mock_sms_record.txt' : 'mock_email_record.txt')
    // A reader sees the one before or this one, whole.
    await writeFile(`${file}.new`, line, readable)
    await rename(`${file}.new`, file)
    await appendFile(
      join(folder, 'mock_messages.jsonl'),
      `${JSON.stringify({ channel, name: message.type, ...record })}\n`,
      readable,
    )
  })
