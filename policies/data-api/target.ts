import { invalid } from './api-error.ts'

/** The target of a request, taken apart. */
export interface Target {
  /** Before the `?`, as it was sent. */
  path: string
  /** From the `?` on, as it was sent. */
  search: string
  /** Undefined without `?`. */
  query: URLSearchParams | undefined
}

/** RFC 9112 §3.2: also with scheme and host, which proxies write and no endpoint asks for. */
export const readTarget = (url: string): Target => {
  const origin = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '')
  const mark = origin.indexOf('?')
  if (mark === -1) return { path: origin, search: '', query: undefined }
  const search = origin.slice(mark)
  return { path: origin.slice(0, mark), search, query: new URLSearchParams(search) }
}

/** Switches such as `?pretty` are on when they are empty or `true`, as in OPA. */
export const isOn = (query: URLSearchParams | undefined, name: string): boolean =>
  query?.getAll(name).some((value) => value === '' || value === 'true') ?? false

/**
 * Where a path with empty or dot segments leads, as OPA redirects: clients join `http://host/` and `/v1/data/…`.
 * Undefined for a clean one. Always a path of this server: it begins with exactly one slash.
 */
export const cleanedPath = (path: string): string | undefined => {
  if (!/\/(?:\/|\.\.?(?:\/|$)|$)/.test(path) || path === '/') return undefined
  const segments: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** The parts of a document's path, decoded one by one: `%2F` does not part. Throws `ApiError`. */
export const decodedParts = (path: string): string[] => {
  try {
    return path.split('/').map(decodeURIComponent)
  } catch {
    throw invalid('the path is not percent-encoded UTF-8')
  }
}
