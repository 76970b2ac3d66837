import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { access, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

/**
 * The console as files for browsers, made from `web/console/` by Vite: `test/web/build.test.ts` says what it may
 * weigh.
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
const sources = join(root, 'web/console')
const configFile = fileURLToPath(new URL('console-vite.ts', import.meta.url))
const builds = join(root, 'node_modules/.cache/surrogate-console')

/**
 * The folder with the console as the sources are now, which is built where it is missing; `building` is told then.
 * Undefined where there is no Vite: installed with `--omit=dev`. `into`: where builds are kept.
 */
export const buildConsole = async (
  building: () => void = () => {},
  into: string = builds,
): Promise<string | undefined> => {
  const folder = join(into, fingerprint())
  if (await exists(folder)) return folder
  const vite = findVite()
  if (vite === undefined) return undefined
  building()
  // Made aside, so that what stands in the folder is always whole; another process may build the same.
  const aside = `${folder}.${process.pid}`
  try {
    await run(vite, aside)
    await rename(aside, folder).catch(async (error) => {
      if (!(await exists(folder))) throw error
    })
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
  return folder
}

/** Beside each file of text, what servers send to browsers that take it compressed. */
export const compressConsole = async (folder: string): Promise<void> => {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const texts = entries.filter((entry) => entry.isFile() && /\.(js|css|html|svg)$/.test(entry.name))
  await Promise.all(
    texts.map(async (entry) => {
      const file = join(entry.parentPath, entry.name)
      const content = await readFile(file)
      await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }))
      await writeFile(`${file}.br`, await promisify(brotliCompress)(content))
    }),
  )
}

/** In a process of its own: it takes memory, and whoever builds may be set to another environment. */
const run = async (vite: string, outDir: string): Promise<void> => {
  const args = [vite, 'build', sources, '--config', configFile, '--configLoader', 'native', '--outDir', outDir]
  const env = { ...process.env, NODE_ENV: 'production' }
  await promisify(execFile)(process.execPath, args, { cwd: root, env }).catch((error: { stderr: string }) => {
    throw new Error(`The console does not build.\n${error.stderr}`)
  })
}

const findVite = (): string | undefined => {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin/vite.js')
  } catch {
    return undefined
  }
}

/** Of all that the result is made from. Each start waits for it, and a promise for each file would double that. */
const fingerprint = (): string => {
  const entries = readdirSync(sources, { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const hash = createHash('sha256')
  for (const file of [...files.toSorted(), configFile, join(root, 'package-lock.json')]) {
    hash.update(`${file.slice(root.length)}\0`)
    hash.update(readFileSync(file))
  }
  return hash.digest('hex').slice(0, 16)
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
