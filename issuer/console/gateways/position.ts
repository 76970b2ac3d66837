/** Where a stream of decisions is: what it is asked for when it has to be opened anew, and what of that is known. */
export interface Position {
  /** False for a record that came before, or is of a time before this stream. Times in RFC 3339. */
  take(record: { decision_id: string; timestamp: string }): boolean
  /** From when on records may be missing. Undefined: nothing is to be asked for. */
  since(): string | undefined
  /** From then on nothing may be missing; only the first of these counts. `exact`: by the gateway's own clock. */
  begin(at: Date, exact: boolean): void
}

/** What came so late that it was behind others by more than this would be missed. Of processes of a gateway, in ms. */
const overlapMs = 5_000
/** Ids. */
const mostKnown = 20_000

/** @param since from when on records are wanted; RFC 3339. */
export const createPosition = (since: string | undefined): Position => {
  const known = new Map<string, number>()
  let newest = since === undefined ? undefined : Date.parse(since)
  /** What is earlier was not asked for. */
  let floor = newest ?? Number.NEGATIVE_INFINITY
  let forgotten = Number.NEGATIVE_INFINITY

  const forget = () => {
    for (const [id, time] of known) {
      const isOld = time < newest! - 2 * overlapMs
      if (!isOld && known.size <= mostKnown) return
      known.delete(id)
      if (!isOld) forgotten = Math.max(forgotten, time)
    }
  }

  return {
    take({ decision_id: id, timestamp }) {
      const time = Date.parse(timestamp)
      if (Number.isNaN(time) || known.has(id) || time < floor) return false
      known.set(id, time)
      newest = Math.max(newest ?? time, time)
      forget()
      return true
    },
    since() {
      if (newest === undefined) return undefined
      // What is not known any more would come again.
      return new Date(Math.max(newest - overlapMs, forgotten, floor)).toISOString()
    },
    begin(at, exact) {
      if (newest !== undefined) return
      newest = at.getTime()
      if (exact) floor = newest
    },
  }
}
