import { resolve } from 'node:path'
import type { z } from 'zod'
import { reencrypt } from '../../issuer/maintenance/reencrypt.ts'
import { type KeyChain, keyChains } from '../../issuer/tokens/keys/key-chain.ts'
import { publishedKeys, type StoredKey } from '../../issuer/tokens/keys/key-store.ts'
import { createKeyRotation } from '../../issuer/tokens/keys/rotation.ts'
import { maxAgeSeconds } from '../../issuer/tokens/keys/rotation-times.ts'
import { type SigningAlgorithmName, signingAlgorithmNames } from '../../issuer/tokens/keys/signing-algorithms.ts'
import { migrations } from '../../migrations/index.ts'
import { loadConfig } from '../../platform/config.ts'
import {
  createDatabase,
  type Database,
  type DatabaseConnection,
  migrate,
  type Query,
} from '../../platform/database/database.ts'
import { visitEmbeddedPostgres } from '../../platform/embedded-postgres/visit.ts'
import { createEnvelope, type Envelope } from '../../platform/envelope.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { forgetPreviousOwnKey, ownPreviousKey, readOwnKey, replaceOwnKey } from '../cli/key-file.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'

/**
 * `surrogate keys list | rotate | reencrypt`, on the database of DATABASE_URL or the one in the data folder, beside a
 * running issuer or without one.
 */
export const keysCommand = async ([name = '', ...args]: readonly string[]): Promise<number> => {
  const subcommand = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined
  if (!subcommand) {
    const message = name === '' ? 'A subcommand of surrogate keys is missing.' : `surrogate keys has no "${name}".`
    throw new StartupError(message, { hint: `Use one of ${Object.keys(subcommands).join(', ')}.` })
  }
  const run = subcommand(args)
  const own = loadConfig(settings.keys, process.env)
  const logger = createLogger({ name: 'keys', level: own.LOG_LEVEL })
  const place = await openPlace(own, { logger, exclusive: run.exclusive?.(own) ?? false })
  try {
    const database = createDatabase({ connection: place.connection, logger })
    try {
      await database.ping()
      await migrate(database, migrations)
      return await run.work({ ...place, database })
    } finally {
      await database.close()
    }
  } finally {
    await place.release()
  }
}

type KeySettings = z.output<typeof settings.keys>

interface KeyEncryptionKeys {
  current: Uint8Array
  previous?: Uint8Array | undefined
}

interface Place {
  connection: DatabaseConnection
  /** The operator's keys, or those beside the data. Throws when there are none. */
  envelope(): Promise<Envelope>
  /** Where the embedded database keeps its own key, unless the operator supplies one. */
  keyFolder: string | undefined
  release(): Promise<void>
}

interface Work extends Place {
  database: Database
}

interface Subcommand {
  /** Whether no other process may use the database meanwhile. */
  exclusive?(own: KeySettings): boolean
  work(work: Work): Promise<number>
}

const openPlace = async (own: KeySettings, options: { logger: Logger; exclusive: boolean }): Promise<Place> => {
  const given = own.KEY_ENCRYPTION_KEY && { current: own.KEY_ENCRYPTION_KEY, previous: own.KEY_ENCRYPTION_KEY_PREVIOUS }
  const envelopeOf = async (keys: () => KeyEncryptionKeys | Promise<KeyEncryptionKeys>) =>
    createEnvelope(given || (await keys()))
  if (own.DATABASE_URL !== undefined) {
    const release = async () => undefined
    return { connection: own.DATABASE_URL, envelope: () => envelopeOf(missing), keyFolder: undefined, release }
  }
  const { connection, folder, release } = await visitEmbeddedPostgres({
    dataDir: resolve(own.SURROGATE_DATA_DIR),
    ...options,
  })
  const ownKeys = async () => {
    const [current, previous] = [await readOwnKey(folder), await ownPreviousKey(folder)]
    return current === undefined
      ? missing()
      : { current: bytes(current), previous: previous ? bytes(previous) : undefined }
  }
  return { connection, envelope: () => envelopeOf(ownKeys), keyFolder: given ? undefined : folder, release }
}

const missing = (): never => {
  throw new StartupError('KEY_ENCRYPTION_KEY must be set: secrets in the database are encrypted under it.', {
    hint: 'Set the same as for the issuer.',
  })
}

const bytes = (base64: string) => Buffer.from(base64, 'base64')

const say = (text: string) => process.stdout.write(`${text}\n`)

const list = (args: readonly string[]): Subcommand => {
  parseOptions(args, {})
  return {
    async work({ database }) {
      say(table(await keysByChain(database.query)))
      return 0
    },
  }
}

const rotate = (args: readonly string[]): Subcommand => {
  const { values } = parseOptions(args, {
    now: { type: 'boolean', default: false },
    algorithm: { type: 'string' },
    'id-tokens': { type: 'boolean', default: false },
  })
  const algorithm = algorithmNamed(values.algorithm)
  const chain = values['id-tokens'] ? 'idToken' : 'signing'
  if (chain === 'idToken' && algorithm !== undefined)
    throw new StartupError('The algorithm of the keys for ID tokens cannot be chosen.', {
      hint: 'Leave out --algorithm.',
    })
  return {
    async work({ database, envelope }) {
      const rotation = createKeyRotation({ envelope: await envelope(), chain })
      const change = values.now ? rotation.replace : rotation.rotate
      const keys = await database.transaction((query) => change(query, { algorithm, by: 'command' }))
      const newest = keys.findLast(({ state }) => state === 'next') ?? keys.find(({ state }) => state === 'active')!
      say((values.now ? replacedText : rotatedText)(newest))
      say(`\n${table(await keysByChain(database.query))}`)
      return 0
    },
  }
}

const algorithmNamed = (name: string | undefined): SigningAlgorithmName | undefined => {
  const known = signingAlgorithmNames.find((one) => one === name)
  if (name !== undefined && known === undefined)
    throw new StartupError(`There is no signing algorithm "${name}".`, {
      hint: `Use one of ${signingAlgorithmNames.join(', ')}.`,
    })
  return known
}

const rotatedText = ({ kid, algorithm, activatedAt }: StoredKey) =>
  `Key ${kid} (${algorithm}) is published. From ${activatedAt!.toISOString()} on it signs, when every verifier knows it.
The present key goes on signing until then and verifies its tokens until the last of them has expired.`

const replacedText = ({ kid, algorithm }: StoredKey) =>
  `Key ${kid} (${algorithm}) signs now, and all keys before it are gone. The issuer refuses tokens signed with them at once;
gateways and other verifiers follow when their copy of the JWKS ends, within ${maxAgeSeconds / 60} minutes. Clients need new tokens.`

const reencryptAll = (args: readonly string[]): Subcommand => {
  parseOptions(args, {})
  return {
    // A running process knows only the key it started with.
    exclusive: ({ KEY_ENCRYPTION_KEY }) => KEY_ENCRYPTION_KEY === undefined,
    async work({ database, envelope, keyFolder }) {
      if (keyFolder !== undefined) await replaceOwnKey(keyFolder)
      const { total, reencrypted, unreadable, missed } = await reencrypt({ database, envelope: await envelope() })
      say(`${reencrypted} of ${total} secrets were encrypted anew.`)
      if (unreadable.length > 0) {
        say(`Under another key than the current and the previous one:\n  ${unreadable.join('\n  ')}`)
        say('Set KEY_ENCRYPTION_KEY_PREVIOUS to that key and run this again.')
        return 1
      }
      if (missed > 0) {
        say(`${missed} changed meanwhile. Run this again.`)
        return 1
      }
      if (keyFolder !== undefined) await forgetPreviousOwnKey(keyFolder)
      say('All secrets are under the current key; the previous one is not needed any more.')
      return 0
    },
  }
}

const subcommands: Record<string, (args: readonly string[]) => Subcommand> = { list, rotate, reencrypt: reencryptAll }

const headings = ['KEY', 'ALGORITHM', 'FOR', 'STATE', 'SIGNS FROM', 'VERIFIES UNTIL']

const purposes = { signing: 'everything', idToken: 'ID tokens with RS256' } as const satisfies Record<KeyChain, string>

type KeysByChain = Record<KeyChain, readonly StoredKey[]>

const keysByChain = async (query: Query): Promise<KeysByChain> => ({
  signing: await publishedKeys(query, 'signing'),
  idToken: await publishedKeys(query, 'idToken'),
})

/** Newest first. */
const table = (keys: KeysByChain): string => {
  if (keys.signing.length === 0) return 'There is no signing key yet; the first start of an issuer makes one.'
  const rows = keyChains.flatMap((chain) =>
    keys[chain]
      .toReversed()
      .map(({ kid, algorithm, state, activatedAt, expiresAt }) => [
        kid,
        algorithm,
        purposes[chain],
        state,
        activatedAt?.toISOString() ?? '',
        expiresAt?.toISOString() ?? '',
      ]),
  )
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
