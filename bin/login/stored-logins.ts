import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { StartupError } from '../../platform/startup-error.ts'

/**
 * What `surrogate login` got, one for each issuer, the newest first: `surrogate/logins.json` in `XDG_CONFIG_HOME`
 * (default `~/.config`), readable by its owner only.
 */
const login = z.object({
  issuer: z.string(),
  clientId: z.string(),
  resources: z.array(z.string()),
  subject: z.string().optional(),
  refreshToken: z.string().optional(),
  /** Access tokens by resource, `''` for none; `expiresAt` in ms since 1970. */
  accessTokens: z.record(z.string(), z.object({ token: z.string(), expiresAt: z.number() })),
})
export type StoredLogin = z.output<typeof login>

const file = z.object({ logins: z.array(login) })

export interface StoredLogins {
  path: string
  /** The newest one, or that of an issuer. Throws `StartupError` when there is none. */
  find(issuer: string | undefined): Promise<StoredLogin>
  save(login: StoredLogin): Promise<void>
  remove(issuer: string): Promise<void>
}

export const storedLogins = ({ XDG_CONFIG_HOME }: { XDG_CONFIG_HOME?: string | undefined }): StoredLogins => {
  // Base Directory Specification: a relative path counts as none.
  const home = XDG_CONFIG_HOME?.startsWith('/') ? XDG_CONFIG_HOME : join(homedir(), '.config')
  const folder = join(home, 'surrogate')
  const path = join(folder, 'logins.json')

  const read = async (): Promise<StoredLogin[]> => {
    const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return '{"logins":[]}'
      throw unusable(path, cause)
    })
    try {
      return file.parse(JSON.parse(text)).logins
    } catch (cause) {
      throw unusable(path, cause)
    }
  }

  const write = async (logins: readonly StoredLogin[]) => {
    const draft = `${path}.${process.pid}`
    await mkdir(folder, { recursive: true, mode: 0o700 })
    try {
      // Whoever reads meanwhile sees the one or the other, whole.
      await writeFile(draft, `${JSON.stringify({ logins }, null, 2)}\n`, { mode: 0o600, flush: true })
      await rename(draft, path)
    } catch (cause) {
      await rm(draft, { force: true })
      throw unusable(path, cause)
    }
  }

  const others = async (issuer: string) => (await read()).filter((one) => one.issuer !== issuer)

  return {
    path,
    async find(issuer) {
      const found = (await read()).find((one) => issuer === undefined || one.issuer === issuer)
      if (found) return found
      throw new StartupError(issuer === undefined ? 'Nobody is signed in.' : `Nobody is signed in at ${issuer}.`, {
        hint: 'Use surrogate login --issuer <url> --client <id>.',
      })
    },
    save: async (saved) => write([saved, ...(await others(saved.issuer))]),
    remove: async (issuer) => write(await others(issuer)),
  }
}

const unusable = (path: string, cause: unknown) =>
  new StartupError(`${path} cannot be read or written.`, {
    hint: 'Is it yours, and the folder writable? Without the file nobody is signed in.',
    cause,
  })
