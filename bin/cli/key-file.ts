import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartupError } from '../../platform/startup-error.ts'

const currentPath = (folder: string) => join(folder, 'key-encryption-key')
const previousPath = (folder: string) => join(folder, 'key-encryption-key.previous')
const newKey = () => randomBytes(32).toString('base64')

/**
 * The key-encryption key of an embedded database: made at the first start, kept beside the data it protects so that
 * both come and go together. Base64 of 32 bytes, readable by its owner only. With DATABASE_URL the operator supplies it
 * (KEY_ENCRYPTION_KEY).
 */
export const ownKeyEncryptionKey = async (folder: string): Promise<string> => {
  const path = currentPath(folder)
  const key = newKey()
  try {
    await writeFile(path, `${key}\n`, { mode: 0o600, flag: 'wx' })
    return key
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return (await readFile(path, 'utf8')).trim()
    throw new StartupError(`The key file ${path} cannot be written (${code}).`, {
      hint: 'Make the folder writable for this user, or choose another one with SURROGATE_DATA_DIR.',
      cause: error,
    })
  }
}

/** The key that a start has made; undefined when there is none. */
export const readOwnKey = (folder: string) => readKey(currentPath(folder))

/** The key before, while values under it are left: when `surrogate keys reencrypt` was interrupted. */
export const ownPreviousKey = (folder: string) => readKey(previousPath(folder))

const readKey = async (path: string): Promise<string | undefined> => {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Puts a new key into the place of the present one, which stays readable beside it until `forgetPreviousOwnKey`. After
 * an interruption it goes on with the new key that there is. At every moment the two files hold every key that is in
 * use.
 */
export const replaceOwnKey = async (folder: string): Promise<void> => {
  const present = await readOwnKey(folder)
  const previous = await ownPreviousKey(folder)
  const interrupted = previous !== undefined && previous !== present
  if (present === undefined || interrupted) return
  await replaceFile(previousPath(folder), present)
  await replaceFile(currentPath(folder), newKey())
}

export const forgetPreviousOwnKey = (folder: string): Promise<void> => rm(previousPath(folder), { force: true })

/** Whole at every moment: the one before or the new one. */
const replaceFile = async (path: string, key: string) => {
  const draft = `${path}.new`
  await rm(draft, { force: true })
  await writeFile(draft, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true })
  await rename(draft, path)
}
