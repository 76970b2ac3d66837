import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PolicyError } from '../base/policy-error.ts'

/** The files of a folder of rules by their path in it, with `/`. */
export type Sources = ReadonlyMap<string, Uint8Array>

/** Folders whose rules are samples to copy from, or no rules at all. Hidden ones are skipped too. */
const skippedFolders = new Set(['examples', 'node_modules'])

/** Whether the file of this path holds tests, which are no part of what is built. */
export const isTest = (name: string): boolean => name.endsWith('_test.rego')
const isSource = (name: string) => name.endsWith('.rego') || isDocument(name)

/** Whether the file of this path is a document, not rules. */
export const isDocument = (name: string): boolean => /(^|\/)data\.(json|ya?ml)$/.test(name)

/** Files and bytes that a folder of rules may hold; a limit against pointing at the wrong folder. */
const mostFiles = 5000
const mostBytes = 67_108_864

/**
 * Reads every `.rego`, `data.json` and `data.yaml` below `folder`; `_test.rego` only when asked. Follows links, as
 * ConfigMaps need.
 */
export const readSources = async (folder: string, options?: { tests?: boolean }): Promise<Sources> => {
  const files = await listSources(folder, options)
  const sources = new Map<string, Uint8Array>()
  for (const { name } of files) sources.set(name, await readable(readFile(join(folder, name)), name))
  return sources
}

/** The same files without their contents, but with what changes when a file is written or replaced. */
export const listSources = async (folder: string, { tests = false } = {}): Promise<SourceFile[]> => {
  const files: SourceFile[] = []
  const walk = async (relative: string): Promise<void> => {
    const entries = await readable(readdir(join(folder, relative)), relative || folder)
    for (const entry of entries.sort()) {
      const name = relative === '' ? entry : `${relative}/${entry}`
      if (entry.startsWith('.') || (isTest(entry) && !tests)) continue
      const { size, mtimeMs, ino, ...found } = await readable(status(join(folder, name)), name)
      if (found.isFolder && !skippedFolders.has(entry)) await walk(name)
      if (found.isFile && isSource(entry)) files.push({ name, size, mtimeMs, ino })
    }
  }
  await walk('')
  if (!files.some(({ name }) => name.endsWith('.rego'))) throw new PolicyError(`${folder} holds no .rego file`)
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  if (files.length > mostFiles || bytes > mostBytes) {
    throw new PolicyError(`${folder} holds more than ${mostFiles} rule files or ${mostBytes} bytes`)
  }
  return files
}

export interface SourceFile {
  name: string
  size: number
  mtimeMs: number
  ino: number
}

const readable = <Result>(reading: Promise<Result>, name: string): Promise<Result> =>
  reading.catch((cause: NodeJS.ErrnoException) => {
    throw new PolicyError(`${name} cannot be read (${cause.code})`, { cause })
  })

const status = async (path: string) => {
  const found = await stat(path)
  return {
    size: found.size,
    mtimeMs: found.mtimeMs,
    ino: found.ino,
    isFile: found.isFile(),
    isFolder: found.isDirectory(),
  }
}

/** SHA-256 (hex) of each file by its path. */
export const hashSources = (sources: Sources): Record<string, string> =>
  Object.fromEntries(
    [...sources].map(([name, content]) => [name, createHash('sha256').update(content).digest('hex')] as const).sort(),
  )

/** A short name for exactly these sources: 12 hex digits. */
export const fingerprint = (hashes: Record<string, string>): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(hashes).sort()))
    .digest('hex')
    .slice(0, 12)

/** The first file that was added, changed or removed between two states of a folder. */
export const firstDifference = (
  before: Record<string, string>,
  after: Record<string, string>,
): { file: string; change: 'added' | 'changed' | 'removed' } | undefined => {
  for (const file of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
    if (before[file] === after[file]) continue
    return { file, change: before[file] === undefined ? 'added' : after[file] === undefined ? 'removed' : 'changed' }
  }
  return undefined
}

/**
 * Writes the sources below `folder`: the compiler then reads exactly the bytes that were hashed, whatever happens to
 * the originals.
 */
export const writeSources = async (sources: Sources, folder: string): Promise<void> => {
  for (const [name, content] of sources) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), content)
  }
}
