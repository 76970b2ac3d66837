import { problem } from '../refusals/problems.ts'

/** What an issuer said about one token. */
export interface TokenAnswer<Answer> {
  /** Undefined: the token is refused. */
  readonly answer: Answer | undefined
  /** Why it is refused, as a sentence for the client. */
  readonly refusal?: string | undefined
  /** How long it counts, in ms since the epoch. */
  readonly until: number
  /** About how much of it is kept, in characters. */
  readonly size: number
}

/**
 * What issuers say about tokens: asked once for everybody who waits, and remembered for as long as the answer counts.
 * Refused tokens never push out good ones. Holds at most 10 000 of either kind, and 32 million characters.
 */
export interface TokenAnswers<Answer> {
  /**
   * At once when it is known; otherwise what `ask` says, whose failures are not remembered. Throws 503
   * `issuer_unavailable` while too many questions are under way; unknown tokens leave half of the room to those that
   * were good when last asked about. `key` is a digest: tokens themselves are not kept.
   */
  get(key: string, ask: () => Promise<TokenAnswer<Answer>>): TokenAnswer<Answer> | Promise<TokenAnswer<Answer>>
  /** Of those that were good when last asked about. */
  readonly size: number
}

const maxEntries = 10_000
const maxSize = 32_000_000
/** Of questions under way. */
const maxUnderWay = 1_000

export const createTokenAnswers = <Answer>({ now }: { now: () => Date }): TokenAnswers<Answer> => {
  const good = createShelf<Answer>()
  const bad = createShelf<Answer>()
  const underWay = new Map<string, Promise<TokenAnswer<Answer>>>()

  const settle = async (key: string, ask: () => Promise<TokenAnswer<Answer>>): Promise<TokenAnswer<Answer>> => {
    try {
      const told = await ask()
      const [kept, other] = told.answer === undefined ? [bad, good] : [good, bad]
      kept.set(key, told)
      other.remove(key)
      return told
    } finally {
      underWay.delete(key)
    }
  }

  return {
    get(key, ask) {
      const time = now().getTime()
      const known = good.get(key) ?? bad.get(key)
      if (known && time < known.until) return known
      const joined = underWay.get(key)
      if (joined) return joined
      const room = known?.answer === undefined ? maxUnderWay / 2 : maxUnderWay
      if (underWay.size >= room) throw problem('issuer_unavailable', { headers: { 'retry-after': '1' } })
      const settled = settle(key, ask)
      underWay.set(key, settled)
      return settled
    },
    get size() {
      return good.size
    },
  }
}

const createShelf = <Answer>() => {
  const entries = new Map<string, TokenAnswer<Answer>>()
  let total = 0
  const remove = (key: string): void => {
    total -= entries.get(key)?.size ?? 0
    entries.delete(key)
  }
  return {
    /** Also one that counts no more: it tells what the token was. */
    get: (key: string): TokenAnswer<Answer> | undefined => entries.get(key),
    remove,
    set(key: string, entry: TokenAnswer<Answer>): void {
      remove(key)
      entries.set(key, entry)
      total += entry.size
      // The oldest goes first: maps keep the order of insertion.
      while (entries.size > maxEntries || total > maxSize) remove(entries.keys().next().value!)
    },
    get size() {
      return entries.size
    },
  }
}
