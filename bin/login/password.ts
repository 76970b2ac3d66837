import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'

/** A line break at the end is the editor's. */
const secretOf = (content: string): Secret => new Secret(content.replace(/\r?\n$/, ''))

/** `-` is standard input. */
export const secretFile = async (path: string): Promise<Secret> => {
  if (path === '-') return secretOf(await text(process.stdin))
  const content = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new StartupError(`${path} cannot be read: ${cause.code}`, { hint: 'Is it there, and readable?', cause })
  })
  return secretOf(content)
}

/** Asks in the terminal without showing what is typed; without a terminal it reads standard input. */
export const askPassword = async (user: string): Promise<Secret> => {
  const { stdin, stderr } = process
  if (!stdin.isTTY) return secretFile('-')
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const reader = createInterface({ input: stdin, output: nowhere, terminal: true })
  try {
    stderr.write(`Password of ${user}: `)
    return new Secret(await reader.question(''))
  } finally {
    reader.close()
    stderr.write('\n')
  }
}
