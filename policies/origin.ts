import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { backOffMs } from '../platform/back-off.ts'
import type { Secret } from '../platform/secret.ts'
import { bundleDownload } from './bundle-download.ts'
import { listSources, PolicyError, readSources, type Sources } from './engine/index.ts'

/** The files of an origin, read once, so that compiler and comparison see the same bytes. */
export type PolicyFiles =
  | { sources: Sources /** What the folder carries. */; bundle?: Uint8Array }
  | { sources?: undefined; bundle: Uint8Array }

/** Where policies come from: a folder of rules, a bundle file, or the address of a bundle. */
export interface PolicyOrigin {
  /** What is there now. Throws `PolicyError`. */
  read(): Promise<PolicyFiles>
  /** The same when it is something else than was read last, else undefined. */
  next(): Promise<PolicyFiles | undefined>
  /** Whether a failure to read may pass by itself, as with a server that does not answer. */
  readonly transient: boolean
  /** How long to wait before asking again, in ms. `failures` in a row so far. */
  pause(failures: number): number
  /** Called when the bundle that was read last is in force. */
  persist?(bundle: Uint8Array): Promise<void>
  /** The bundle that was in force when the process last ran, if it was persisted. */
  persisted?(): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

/** Of a bundle behind an address. */
export interface RemoteSettings {
  /** Between two questions, in ms. Default 30 000, ±10 %. After failures twice as long each time, up to ten minutes. */
  poll?: number | undefined
  /** Bearer token for the server. */
  token?: Secret | undefined
  /** A file that keeps the last good bundle, to start from while the server cannot be reached. Default: none. */
  cache?: string | undefined
}

/** The compiled policies that a folder of rules may carry. */
export const bundleFile = 'bundle.tar.gz'

export const isAddress = (path: string): boolean => /^https?:\/\//i.test(path)

/** An address that is reached across a network without TLS, where the rules could be replaced on their way. */
export const isOpenAddress = (path: string): boolean => {
  if (!isAddress(path) || !URL.canParse(path)) return false
  const { protocol, hostname } = new URL(path)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

export const policyOrigin = (path: string, remote: RemoteSettings = {}): PolicyOrigin =>
  isAddress(path) ? remoteOrigin(path, remote) : fileOrigin(path)

/**
 * How often the files' state is looked at. Milliseconds. Polling rather than `fs.watch`, which misses replaced links
 * (Kubernetes ConfigMaps) and network file systems; a `stat` a file, so a large folder is looked at less often: at most
 * about 4 % of one core.
 */
const pollEvery = 200
const pollPerFile = 1

const fileOrigin = (path: string): PolicyOrigin => {
  let seen: string | undefined
  let count = 1
  const look = async (): Promise<string> => {
    try {
      const state = await filesState(path)
      count = state.count
      return state.text
    } catch (error) {
      // A folder that cannot be read is a state too: it is reported once, and left by loading again.
      return (error as Error).message
    }
  }
  const read = async (): Promise<PolicyFiles> => {
    // The state is taken before the files: a write in between gives another state, which the next look finds.
    seen = await look()
    return readPolicyFiles(path)
  }
  return {
    read,
    next: async () => ((await look()) === seen ? undefined : read()),
    transient: false,
    pause: () => Math.max(pollEvery, count * pollPerFile),
    close: async () => {},
  }
}

const longestPause = 600_000

const remoteOrigin = (url: string, { poll = 30_000, token, cache }: RemoteSettings): PolicyOrigin => {
  const download = bundleDownload({ url, token })
  let last: Uint8Array | undefined
  const next = async (): Promise<PolicyFiles | undefined> => {
    const bundle = await download.next()
    if (!bundle || (last && Buffer.compare(last, bundle) === 0)) return undefined
    last = bundle
    return { bundle }
  }
  return {
    next,
    async read() {
      await next()
      if (!last) throw new PolicyError(`${url} gave no bundle`)
      return { bundle: last }
    },
    transient: true,
    pause: (failures) => backOffMs(failures + 1, { first: poll, longest: Math.max(poll, longestPause), jitter: 0.1 }),
    ...(cache !== undefined && {
      async persist(bundle: Uint8Array) {
        await writeFile(`${cache}.new`, bundle, { mode: 0o600 })
        await rename(`${cache}.new`, cache)
      },
      persisted: () => readFile(cache).catch(() => undefined),
    }),
    close: download.close,
  }
}

const readPolicyFiles = async (path: string): Promise<PolicyFiles> => {
  if (!(await isFolder(path))) return { bundle: await readFile(path) }
  const sources = await readSources(path)
  const bundle = await readFile(join(path, bundleFile)).catch(() => undefined)
  return { sources, ...(bundle && { bundle }) }
}

/** Changes whenever a file that counts is written, replaced, added or removed. */
const filesState = async (path: string): Promise<{ text: string; count: number }> => {
  const sources = (await isFolder(path)) ? await listSources(path) : undefined
  const bundle = await stat(sources ? join(path, bundleFile) : path).catch(() => undefined)
  const text = JSON.stringify([sources, bundle?.size, bundle?.mtimeMs, bundle?.ino])
  return { text, count: sources?.length ?? 1 }
}

const isFolder = async (path: string): Promise<boolean> => {
  const found = await stat(path).catch((cause: unknown) => {
    throw new PolicyError(`there are no policies at ${path}`, { cause })
  })
  return found.isDirectory()
}
