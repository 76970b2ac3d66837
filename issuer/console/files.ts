import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { extname, join } from 'node:path'
import { sha256 } from '../../platform/secret.ts'

/** A file of the console as a browser gets it. */
export interface ConsoleFile {
  content: Buffer
  headers: Readonly<Record<string, string>>
}

export interface ConsoleFiles {
  /** The page that everything happens in. */
  shell(request: IncomingMessage): Promise<ConsoleFile>
  /** By its name, which holds a hash. Undefined: there is none. */
  asset(request: IncomingMessage, name: string): Promise<ConsoleFile | undefined>
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
}

/** The better first. */
const encodings = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
]

const accepts = ({ headers }: IncomingMessage, encoding: string): boolean =>
  String(headers['accept-encoding'] ?? '')
    .split(',')
    .some((part) => {
      const [name, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      return name === encoding && !parameters.some((text) => /^q=0(\.0*)?$/.test(text))
    })

/**
 * What the build left in `folder`, compressed files beside the others. They never change there, so each is read once.
 * Only what the folder lists is ever opened.
 */
export const createConsoleFiles = (folder: string): ConsoleFiles => {
  const read = new Map<string, Promise<Buffer>>()
  const contentOf = (path: string): Promise<Buffer> => {
    const known = read.get(path) ?? readFile(join(folder, path))
    read.set(path, known)
    known.catch(() => read.delete(path))
    return known
  }

  let listed: Promise<ReadonlySet<string>> | undefined
  const names = () => {
    listed ??= readdir(folder, { withFileTypes: true, recursive: true }).then(
      (entries) =>
        new Set(
          entries
            .filter((entry) => entry.isFile())
            .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1)),
        ),
    )
    listed.catch(() => {
      listed = undefined
    })
    return listed
  }

  const send = async (request: IncomingMessage, path: string): Promise<ConsoleFile | undefined> => {
    const known = await names()
    const type = types[extname(path)]
    if (!known.has(path) || type === undefined) return undefined
    const encoding = encodings.find(({ name, ending }) => known.has(path + ending) && accepts(request, name))
    const content = await contentOf(path + (encoding?.ending ?? ''))
    return {
      content,
      headers: {
        'Content-Type': type,
        Vary: 'Accept-Encoding',
        ...(encoding && { 'Content-Encoding': encoding.name }),
      },
    }
  }

  return {
    async shell(request) {
      const file = await send(request, 'index.html')
      if (!file) throw new Error(`the console in ${folder} has no index.html`)
      const etag = `"${sha256(file.content).toString('base64url').slice(0, 22)}"`
      return { ...file, headers: { ...file.headers, 'Cache-Control': 'no-cache', ETag: etag } }
    },
    async asset(request, name) {
      const file = await send(request, join('assets', name))
      return file && { ...file, headers: { ...file.headers, 'Cache-Control': 'public, max-age=31536000, immutable' } }
    },
  }
}
