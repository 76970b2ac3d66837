import { type Fetched, fetchJson, type JsonFetcher } from '../../platform/jwt/fetch-json.ts'
import type { DocumentRequest } from './messages.ts'

/** Key sets and discovery documents of issuers, asked for once for all workers. */
export interface Documents {
  /**
   * What somebody else was given within the cooldown, with its age, unless `worker` knows it already: then the issuer
   * is asked. While it does not answer, a worker that knows nothing is given what was known last. Throws as
   * `JsonFetcher`.
   */
  get(worker: object, request: DocumentRequest): Promise<Fetched>
  close(): Promise<void>
}

/** How long a failure is shared: clients wait at least that long before they try again. In ms. */
const failureMs = 1_000

interface Attempt {
  begunAt: number
  result: Promise<Fetched>
  failed: boolean
  given: WeakSet<object>
}

interface Document {
  latest?: Attempt
  /** The latest that did not fail. */
  good?: Attempt
}

export const createDocuments = (): Documents => {
  const fetchers = new Map<string, JsonFetcher>()
  const documents = new Map<string, Document>()

  const fetcherOf = ({ timeoutMs, maxBytes }: DocumentRequest): JsonFetcher => {
    const key = `${timeoutMs} ${maxBytes}`
    const fetcher = fetchers.get(key) ?? fetchJson({ timeoutMs, maxBytes })
    fetchers.set(key, fetcher)
    return fetcher
  }

  const ask = (document: Document, request: DocumentRequest): Attempt => {
    const result = fetcherOf(request).get(request.url)
    const attempt: Attempt = { begunAt: performance.now(), result, failed: false, given: new WeakSet() }
    document.latest = attempt
    result.then(
      () => {
        document.good = attempt
      },
      () => {
        attempt.failed = true
      },
    )
    return attempt
  }

  return {
    async get(worker, request) {
      const key = JSON.stringify(request)
      const document = documents.get(key) ?? {}
      documents.set(key, document)
      const ageOf = ({ begunAt }: Attempt) => performance.now() - begunAt
      const { latest } = document
      const shareable =
        latest && !latest.given.has(worker) && ageOf(latest) < (latest.failed ? failureMs : request.cooldownMs)
      const attempt = shareable ? latest : ask(document, request)
      attempt.given.add(worker)
      try {
        const fetched = await attempt.result
        return shareable ? { ...fetched, ageMs: ageOf(attempt) } : fetched
      } catch (error) {
        const { good } = document
        if (!good || good.given.has(worker)) throw error
        good.given.add(worker)
        return { ...(await good.result), ageMs: ageOf(good) }
      }
    },
    async close() {
      await Promise.all([...fetchers.values()].map((fetcher) => fetcher.close()))
    },
  }
}
