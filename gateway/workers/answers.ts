import { UnexpectedStatus } from '../../platform/jwt/fetch-json.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { countedUsedProofs } from '../caller/dpop/used-proofs.ts'
import type { Providers } from '../providers.ts'
import { createDocuments } from './documents.ts'
import { createFeeds } from './feeds.ts'
import type { PrimaryHandlers, WorkerProcess } from './fork-worker.ts'
import { createIntrospections, type Introspections } from './introspections.ts'
import { createLimits, type Limits } from './limits.ts'

/** What the primary process does for its workers: asks issuers, follows their feeds, counts, remembers proofs. */
export interface Answers {
  limits: Limits
  introspections: Introspections
  /** For what this process asks for itself. */
  providers: Pick<Providers, 'fetchJson' | 'followRevocations'>
  /** @param ready called when it has the keys and revocations of all issuers. */
  to(worker: WorkerProcess, ready: () => void): Omit<PrimaryHandlers, 'decisions'>
  /** Of a worker that has ended. */
  forget(worker: WorkerProcess): void
  close(): Promise<void>
}

export const createAnswers = ({ metrics }: { metrics: Metrics }): Answers => {
  const documents = createDocuments()
  const feeds = createFeeds()
  const introspections = createIntrospections({ metrics })
  const limits = createLimits({ metrics })
  const proofs = countedUsedProofs(metrics)
  /** By the worker's number for the feed: what ends following it. */
  const followed = new WeakMap<WorkerProcess, Map<number, () => void>>()
  const followedBy = (worker: WorkerProcess) => {
    const known = followed.get(worker) ?? new Map<number, () => void>()
    followed.set(worker, known)
    return known
  }

  return {
    limits,
    introspections,
    providers: {
      fetchJson: (settings) => ({
        get: (url) => documents.get(documents, { url, ...settings }),
        close: async () => {},
      }),
      followRevocations: ({ url, client, waitSeconds, onPage, onFailure }) => {
        const address = { url, id: client.id, secret: client.secret.reveal(), waitSeconds }
        const end = feeds.follow(address, { revoked: onPage, failed: onFailure })
        return { close: async () => end() }
      },
    },
    to: (worker, ready) => ({
      ready,
      fetch: (request) => documents.get(worker, request).catch(statusOf),
      introspect: (request) => introspections.ask(request),
      take: (requests) => limits.take(requests),
      useProofs: (used) => used.map((proof) => proofs.use(proof, Date.now())),
      follow({ feed, ...address }) {
        if (!worker.alive) return
        const end = feeds.follow(address, {
          revoked: (entries, upToDate, silent) =>
            worker.tell('revoked', { feed, entries: [...entries], upToDate, silent }),
          failed: (reason, failures) => worker.tell('feedFailed', { feed, reason, failures }),
        })
        followedBy(worker).set(feed, end)
      },
      unfollow({ feed }) {
        followedBy(worker).get(feed)?.()
        followedBy(worker).delete(feed)
      },
    }),
    forget(worker) {
      for (const end of followedBy(worker).values()) end()
      followed.delete(worker)
    },
    async close() {
      proofs.close()
      await Promise.all([documents.close(), feeds.close(), introspections.close()])
    },
  }
}

/** Errors are told by their message alone, and this one means something to whoever asked. */
const statusOf = (error: unknown): { status: number } => {
  if (error instanceof UnexpectedStatus) return { status: error.status }
  throw error
}
