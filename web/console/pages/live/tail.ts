/** The last rows of something that never ends: bounded, without repetitions, and told of no more often than is looked at. */
export interface Tail<Row extends TailRow> {
  /** In any order; what is there already is left out. */
  add(rows: readonly Row[]): void
  /** While held nothing moves: what comes is counted. */
  hold(isHeld: boolean): void
  clear(): void
  /** The same object until something has changed. */
  view(): TailView<Row>
  subscribe(tell: () => void): () => void
}

export interface TailRow {
  /** Two rows with the same are one. */
  key: string
  /** RFC 3339 in UTC with milliseconds, so that texts compare as times do. */
  timestamp: string
}

export interface TailView<Row> {
  /** Newest first. */
  rows: readonly Row[]
  /** That have come while it is held. */
  waiting: number
}

export interface TailOptions {
  /** Rows that are kept; the oldest go. */
  keep: number
  /** Between two changes of the view. In ms. */
  everyMs: number
  /** Calls back later; returns what prevents it. */
  later?: (run: () => void, ms: number) => () => void
  now?: () => number
}

/** Keys that are remembered for each row that is kept: what comes again after a break may be older than all rows. */
const remembered = 10

const after = (run: () => void, ms: number): (() => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

export const createTail = <Row extends TailRow>(options: TailOptions): Tail<Row> => {
  const { keep, everyMs, later = after, now = () => performance.now() } = options
  const listeners = new Set<() => void>()
  const known = new Set<string>()
  let current: TailView<Row> = { rows: [], waiting: 0 }
  /** Not shown yet; oldest first. */
  let pending: Row[] = []
  let waiting = 0
  let isHeld = false
  let toldAt = Number.NEGATIVE_INFINITY
  let cancel: (() => void) | undefined

  const tell = () => {
    cancel = undefined
    toldAt = now()
    if (isHeld) current = { ...current, waiting }
    else {
      current = { rows: newestFirst([...current.rows.toReversed(), ...pending]).slice(0, keep), waiting: 0 }
      pending = []
      waiting = 0
    }
    for (const listener of listeners) listener()
  }
  const tellSoon = () => {
    cancel ??= later(tell, Math.max(0, toldAt + everyMs - now()))
  }
  const isNew = ({ key }: Row): boolean => {
    if (known.has(key)) return false
    known.add(key)
    if (known.size > keep * remembered) known.delete(known.values().next().value!)
    return true
  }

  return {
    add(rows) {
      const added = rows.filter(isNew)
      if (added.length === 0) return
      waiting += added.length
      pending.push(...added)
      // What nobody would see is not kept either, however long it is held.
      if (pending.length > 2 * keep) pending = newestFirst(pending).slice(0, keep).toReversed()
      tellSoon()
    },
    hold(next) {
      if (next === isHeld) return
      isHeld = next
      if (pending.length > 0) tellSoon()
    },
    clear() {
      cancel?.()
      cancel = undefined
      pending = []
      waiting = 0
      known.clear()
      current = { rows: [], waiting: 0 }
      for (const listener of listeners) listener()
    },
    view: () => current,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Of those at the same time, the one that came later first. */
const newestFirst = <Row extends TailRow>(rows: readonly Row[]): Row[] =>
  rows
    .map((row, place) => ({ row, place }))
    .toSorted((one, other) =>
      one.row.timestamp === other.row.timestamp
        ? other.place - one.place
        : one.row.timestamp < other.row.timestamp
          ? 1
          : -1,
    )
    .map(({ row }) => row)
