import { createBatcher } from '../../platform/batcher.ts'
import { createNonces } from '../../platform/dpop/nonces.ts'
import { UnexpectedStatus } from '../../platform/jwt/fetch-json.ts'
import type { WantedToken } from '../authorize/rate-limit.ts'
import type { BucketAnswer } from '../authorize/token-buckets.ts'
import type { ProofUse, UsedProof } from '../caller/dpop/used-proofs.ts'
import { questionTimeoutMs } from '../caller/introspection-questions.ts'
import type { RevocationReaderOptions } from '../caller/revocation-reader.ts'
import type { Providers } from '../providers.ts'
import type { Channel, Handlers } from './channel.ts'
import type { primaryCalls, workerCalls } from './messages.ts'

type ToPrimary = Pick<Channel<typeof primaryCalls>, 'call' | 'tell'>

/** What a worker gets from its primary process instead of the network. */
export interface AskPrimary {
  /** Before the first gateway is built. */
  start(nonceKey: Uint8Array): void
  providers: Omit<Providers, 'watchPolicies'>
  handlers: Pick<Handlers<typeof workerCalls>, 'revoked' | 'feedFailed'>
}

/** Beside the time that the call itself may take, in ms. */
const graceMs = 2_000
/** A primary process that has not counted a request by then is gone or stands still. In ms. */
const limitsTimeoutMs = 2_000
/** The same of DPoP proofs; less than a proof is remembered beyond its time. In ms. */
const proofsTimeoutMs = 2_000

export const createAskPrimary = (primary: ToPrimary): AskPrimary => {
  const feeds = new Map<number, RevocationReaderOptions>()
  let lastFeed = 0
  let nonceKey: Uint8Array
  const useProof = useTogether(primary)

  return {
    start(key) {
      nonceKey = key
    },
    providers: {
      fetchJson: (settings) => ({
        async get(url) {
          const answer = await primary.call('fetch', { url, ...settings }, settings.timeoutMs + graceMs)
          if ('status' in answer) throw new UnexpectedStatus(url, answer.status)
          return answer
        },
        close: async () => {},
      }),
      followRevocations(options) {
        const feed = ++lastFeed
        const { url, client, waitSeconds } = options
        feeds.set(feed, options)
        primary.tell('follow', { feed, url, id: client.id, secret: client.secret.reveal(), waitSeconds })
        return {
          async close() {
            feeds.delete(feed)
            primary.tell('unfollow', { feed })
          },
        }
      },
      takeTokens: takeTogether(primary),
      introspect: ({ issuer, client }) => ({
        ask: (url, token) =>
          primary.call(
            'introspect',
            { issuer, url, id: client.id, secret: client.secret.reveal(), token },
            questionTimeoutMs + graceMs,
          ),
        close: async () => {},
      }),
      openProofRecords: () => ({
        nonces: createNonces(nonceKey),
        use: useProof,
        passed: new WeakMap(),
        close: () => {},
      }),
    },
    handlers: {
      revoked: ({ feed, entries, upToDate, silent }) => feeds.get(feed)?.onPage(entries, upToDate, silent),
      feedFailed: ({ feed, reason, failures }) => feeds.get(feed)?.onFailure(reason, failures),
    },
  }
}

/** Requests that were read in one turn of the event loop are counted by one message. */
const takeTogether = (primary: ToPrimary) => {
  type Asked = {
    wanted: readonly WantedToken[]
    resolve: (answers: readonly BucketAnswer[]) => void
    reject: (error: unknown) => void
  }
  let waiting: Asked[] = []

  const flush = () => {
    const asked = waiting
    waiting = []
    const lists = asked.map(({ wanted }) => wanted.map(({ limit, party }) => ({ key: limit.key, party })))
    primary.call('take', lists, limitsTimeoutMs).then(
      (answers) => {
        for (const [index, { wanted, resolve, reject }] of asked.entries()) {
          const answer = answers[index]
          if (answer?.length === wanted.length) resolve(answer)
          else reject(new Error('the primary process answered something else'))
        }
      },
      (error: unknown) => {
        for (const { reject } of asked) reject(error)
      },
    )
  }

  return (wanted: readonly WantedToken[]): Promise<readonly BucketAnswer[]> =>
    new Promise((resolve, reject) => {
      if (waiting.push({ wanted, resolve, reject }) === 1) setImmediate(flush)
    })
}

/** One message for the proofs that come while the one before is answered. */
const useTogether = (primary: ToPrimary) =>
  createBatcher<UsedProof, ProofUse>({
    async send(proofs) {
      const uses = await primary.call('useProofs', [...proofs], proofsTimeoutMs)
      if (uses.length !== proofs.length) throw new Error('the primary process answered something else')
      return uses
    },
    mayRepeat: () => false,
    most: 500,
    secondAfterMs: 2,
    mostUnderWay: 8,
  })
