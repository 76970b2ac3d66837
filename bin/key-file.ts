import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartupError } from '../platform/startup-error.ts'

/**
 * The key-encryption key of an embedded database: made at the first start, kept beside the data it protects so that both come and
 * go together. Base64 of 32 bytes, readable by its owner only. With DATABASE_URL the operator supplies it (KEY_ENCRYPTION_KEY).
 */
export const ownKeyEncryptionKey = async (folder: string): Promise<string> => {
  const path = join(folder, 'key-encryption-key')
  const key = randomBytes(32).toString('base64')
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
