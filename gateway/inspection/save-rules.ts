import { randomBytes } from 'node:crypto'
import { lstat, open, readFile, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isTest } from '../../policies/engine/index.ts'
import { problem } from '../refusals/problems.ts'
import type { SaveRequest } from './policy-answers.ts'
import { sha256Of } from './policy-files.ts'

type Wanted = SaveRequest['files'][string]

/** A file that is to be saved, in a folder that was looked at. */
interface Place extends Wanted {
  path: string
  /** Absolute. */
  file: string
  mode: number
}

const usualMode = 0o644

/**
 * Puts files of rules in the place of what was read: each in one step, tests first, so that whoever follows the folder
 * sees the rules before or after and nothing between. `check` looks at the rules before anything is written. Throws
 * `AppError`: 400, 412.
 */
export const saveRules = async (folder: string, files: SaveRequest['files'], check: () => Promise<void>) => {
  const wanted = Object.entries(files)
  if (wanted.filter(([path]) => !isTest(path)).length > 1) {
    throw refused('One file of rules can be saved at a time, with its tests: several are no one step.')
  }
  const root = await realpath(folder)
  const look = () => Promise.all(wanted.map(([path, file]) => placeOf(root, path, file)))
  await look()
  await check()
  // The check takes a while.
  const places = (await look()).toSorted((one, other) => Number(isTest(other.path)) - Number(isTest(one.path)))
  const written: string[] = []
  try {
    const ready = await Promise.all(places.map((place) => prepared(place, written)))
    for (const put of ready) await put()
  } finally {
    await Promise.all(written.map((file) => rm(file, { force: true })))
  }
  for (const parent of new Set(places.map(({ file }) => dirname(file)))) await sync(parent)
  return Promise.all(
    places.map(async ({ path, text }) => ({
      path,
      ...(text !== null && { sha256: await sha256Of(Buffer.from(text)) }),
    })),
  )
}

const refused = (detail: string) => problem('invalid_request', { detail })

/** `path` is one that `rulePath` has let through. No step of it may be a link: that could lead out of the folder. */
const placeOf = async (root: string, path: string, wanted: Wanted): Promise<Place> => {
  const steps = path.split('/')
  for (const index of steps.slice(1).keys()) {
    const parent = steps.slice(0, index + 1).join('/')
    const found = await lstat(join(root, parent)).catch(() => undefined)
    if (!found?.isDirectory()) throw refused(`${parent} is no folder that is there.`)
  }
  const file = join(root, path)
  const found = await lstat(file).catch(() => undefined)
  if (found && !found.isFile()) throw refused(`${path} is no file but a link or something else.`)
  const now = found ? await sha256Of(await readFile(file)) : null
  if (now !== wanted.replaces) throw problem('rules_changed', { detail: changed(path, now, wanted.replaces) })
  return { ...wanted, path, file, mode: found ? found.mode & 0o777 : usualMode }
}

const changed = (path: string, now: string | null, before: string | null): string => {
  if (now === null) return `${path} is not there any more.`
  return before === null ? `${path} is there already.` : `${path} has changed since it was read.`
}

/** Writes beside the file, under a name that nobody reads. Returns what puts it in its place. */
const prepared = async ({ file, text, mode }: Place, written: string[]): Promise<() => Promise<void>> => {
  if (text === null) return () => rm(file)
  const beside = join(dirname(file), `.${basename(file)}.${randomBytes(8).toString('hex')}`)
  const handle = await open(beside, 'wx', mode)
  written.push(beside)
  try {
    await handle.writeFile(text)
    // Whatever the umask is.
    await handle.chmod(mode)
    await handle.sync()
  } finally {
    await handle.close()
  }
  return () => rename(beside, file)
}

/** So that a renamed file is still there after a crash. */
const sync = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
