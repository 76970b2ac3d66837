import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { loadConfig } from '../../platform/config.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { printOutbox } from '../messages/outbox-file.ts'

/** Where messages go in development, unless `MESSAGE_OUTBOX` says otherwise. */
export const outboxIn = (dataDir: string): string => join(resolve(dataDir), 'messages.jsonl')

/** `surrogate messages [--follow]`: what was sent to people in development, codes included. */
export const messagesCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, { follow: { type: 'boolean', default: false } })
  const own = loadConfig(settings.messages, process.env)
  const file = own.MESSAGE_OUTBOX ?? outboxIn(own.SURROGATE_DATA_DIR)
  if (!values.follow && !existsSync(file))
    throw new StartupError(`There are no messages in ${file}.`, {
      hint: 'Only a service in development, without a connector, writes them there (docs/messages.md).',
      exitCode: 3,
    })
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
  const print = (text: string) => void process.stdout.write(text)
  await printOutbox(file, { from: 0, follow: values.follow, print, signal: stopping.signal })
  return 0
}
