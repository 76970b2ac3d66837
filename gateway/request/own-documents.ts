import { answered, type ReadRequest, type Stage } from './request-context.ts'

/** A public JSON document that the gateway itself answers with. */
export interface OwnDocument {
  /** Canonical; undefined = any. */
  host?: string
  /** Canonical. */
  path: string
  body: string
}

export interface ServeOwnDocumentsParts {
  documents: readonly OwnDocument[]
}

/** Public, and small enough that nobody needs the old one for long. */
const headers = {
  'cache-control': 'public, max-age=300',
  // For clients in browsers: with fields of their own they send a preflight first.
  'access-control-allow-origin': '*',
}
const preflightHeaders = {
  ...headers,
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': '*',
  'access-control-max-age': '3600',
}

/**
 * Answers for the documents of the gateway itself, before any route. The host decides only between several on one path:
 * a proxy in front may have changed it.
 */
export const createServeOwnDocuments = ({ documents }: ServeOwnDocumentsParts): Stage<ReadRequest> => {
  const byPath = Map.groupBy(documents, ({ path }) => path)
  if (byPath.size === 0) return () => {}
  return ({ request, response, id }) => {
    const { method, path, host, bodyLength } = request
    if (!path.startsWith('/.well-known/') || bodyLength !== 0) return
    const candidates = byPath.get(path) ?? []
    const document = candidates.length === 1 ? candidates[0] : candidates.find((one) => one.host === host)
    if (!document) return
    const { body } = document
    if (method === 'OPTIONS') response.writeHead(204, { ...preflightHeaders, 'x-request-id': id }).end()
    else if (method === 'GET' || method === 'HEAD') {
      const length = Buffer.byteLength(body)
      response
        .writeHead(200, {
          ...headers,
          'content-type': 'application/json',
          'content-length': length,
          'x-request-id': id,
        })
        .end(method === 'HEAD' ? undefined : body)
    } else return
    return answered
  }
}
