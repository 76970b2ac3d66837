/** The last rows of something that never ends: bounded, each once, and still while somebody looks. */
export interface Tail<Row extends TailRow> {
  /** Newest first. */
  rows: readonly Row[]
  /** What has come while it was held, as far as it would be shown. */
  held: readonly Row[]
  /** How many have come while it was held. */
  waiting: number
}

export interface TailRow {
  /** Two rows with the same are one. */
  key: string
  /** RFC 3339 in UTC with milliseconds, so that texts compare as times do. */
  timestamp: string
}

export const emptyTail: Tail<never> = { rows: [], held: [], waiting: 0 }

/** `added`: oldest first. `keep`: rows; the oldest go. `isHeld`: nothing that is shown moves. */
export const withRows = <Row extends TailRow>(
  tail: Tail<Row>,
  added: readonly Row[],
  { keep, isHeld }: { keep: number; isHeld: boolean },
): Tail<Row> => {
  const known = new Set([...tail.rows, ...tail.held].map(({ key }) => key))
  const fresh = added.filter(({ key }) => !known.has(key) && known.add(key))
  if (fresh.length === 0) return tail
  if (!isHeld) return { ...tail, rows: newestFirst(tail.rows, fresh).slice(0, keep) }
  return { ...tail, held: newestFirst(tail.held, fresh).slice(0, keep), waiting: tail.waiting + fresh.length }
}

/** Shows what has come meanwhile. */
export const released = <Row extends TailRow>(tail: Tail<Row>, keep: number): Tail<Row> =>
  tail.waiting === 0 ? tail : { ...emptyTail, rows: newestFirst(tail.rows, tail.held.toReversed()).slice(0, keep) }

/** Of those at the same time, the one that came later first. `rows`: newest first; `added`: oldest first. */
const newestFirst = <Row extends TailRow>(rows: readonly Row[], added: readonly Row[]): Row[] =>
  // Sorting keeps the order of what is equal.
  [...added.toReversed(), ...rows].toSorted((one, other) =>
    one.timestamp === other.timestamp ? 0 : one.timestamp < other.timestamp ? 1 : -1,
  )
