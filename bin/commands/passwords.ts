import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { normalizedPassword } from '../../issuer/directory/users/password.ts'
import { buildFilter, sha1 } from '../../issuer/directory/users/password-policy/breached/filter.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { parseOptions } from '../cli/options.ts'

/** `surrogate passwords build-filter <list> --out <file>`: the file of BREACHED_PASSWORDS_FILE. */
export const passwordsCommand = async ([name = '', ...args]: readonly string[]): Promise<number> => {
  if (name !== 'build-filter') {
    const message =
      name === '' ? 'A subcommand of surrogate passwords is missing.' : `surrogate passwords has no "${name}".`
    throw new StartupError(message, { hint: 'Use build-filter.' })
  }
  const { values, positionals } = parseOptions(
    args,
    { out: { type: 'string' }, 'false-positives': { type: 'string', default: '0.0001' } },
    { positionals: true },
  )
  const [list, ...more] = positionals
  if (list === undefined || more.length > 0 || values.out === undefined) {
    throw new StartupError('build-filter needs one list, and --out.', {
      hint: 'surrogate passwords build-filter pwned-passwords.txt --out breached.filter',
    })
  }
  const rate = Number(values['false-positives'])
  if (!(rate >= 1e-9 && rate <= 0.1))
    throw new StartupError('--false-positives is out of bounds.', { hint: 'Between 0.000000001 and 0.1.' })
  const { entries, bytes } = await build(list, values.out, rate)
  process.stdout.write(`${values.out}: ${entries} passwords, ${bytes} bytes\n`)
  return 0
}

const sha1Line = /^([0-9a-f]{40})(?::\d+)?$/i

/** A line is a SHA-1 in hexadecimal, as Have I Been Pwned has them (`<digest>:<count>`), or a password. */
async function* digestsOf(list: string): AsyncGenerator<Buffer> {
  const lines = createInterface({ input: createReadStream(list), crlfDelay: Number.POSITIVE_INFINITY })
  for await (const line of lines) {
    if (line === '') continue
    const digest = sha1Line.exec(line)?.[1]
    yield digest === undefined ? sha1(normalizedPassword(line)) : Buffer.from(digest, 'hex')
  }
}

const build = async (list: string, out: string, rate: number) => {
  let entries = 0
  try {
    // Twice: how large the filter is depends on how many there are.
    for await (const _ of digestsOf(list)) entries++
    const filter = buildFilter(entries, rate)
    for await (const digest of digestsOf(list)) filter.add(digest)
    const pieces = filter.pieces()
    await writeWhole(out, pieces)
    return { entries, bytes: pieces.reduce((total, piece) => total + piece.length, 0) }
  } catch (error) {
    if (error instanceof StartupError) throw error
    throw new StartupError(`The filter could not be made of ${list}.`, {
      hint: 'The list must be a file that can be read, and --out a place that can be written to.',
      cause: error,
    })
  }
}

/** A running issuer has the old one open: it stays whole until the new one takes its name. */
const writeWhole = async (out: string, pieces: readonly Buffer[]) => {
  const unfinished = `${out}.${process.pid}.unfinished`
  try {
    const file = await open(unfinished, 'wx')
    try {
      for (const piece of pieces) await file.writeFile(piece)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(unfinished, out)
  } finally {
    await rm(unfinished, { force: true })
  }
}
