import type { DecisionFilter } from './decision-answers.ts'
import { fits, type KeptDecision } from './decision-record.ts'

/** A record as JSON. `time` in ms since 1970. */
export interface FoundDecision {
  time: number
  bytes: Uint8Array<ArrayBuffer>
}

export interface FoundDecisions {
  /** Newest first. */
  decisions: FoundDecision[]
  /** Whether there are more. */
  more: boolean
}

/** What is told of decisions that are made from now on. */
export interface DecisionFollower {
  /** `old`: they were kept already, and come before those that are made. */
  decisions(records: readonly Uint8Array<ArrayBuffer>[], old: boolean): void
  /** So many were not told, because the follower was slow. */
  lost(count: number): void
}

/** What is told first of what is kept: from `since` on, in ms since 1970, and of that the newest `most` bytes. */
export interface Replay {
  since: number
  most: number
}

/** The last decisions of the gateway, in this process or in its workers. */
export interface Decisions {
  find(filter: DecisionFilter, limit: number): Promise<FoundDecisions>
  /** Nothing is missing between a `replay` and what comes then. Returns what ends it. */
  follow(filter: DecisionFilter, follower: DecisionFollower, replay?: Replay): () => void
}

export interface DecisionRing extends Decisions {
  add(kept: KeptDecision): void
  /** Of all that is kept. */
  readonly bytes: number
}

/** Of one answer, in bytes of records. */
export const mostFound = 8_388_608

/** What a record takes beside its own bytes and the texts that it is found by. */
const overhead = 512

const sizeOf = ({ bytes, request, sid = '', subject = '' }: KeptDecision): number =>
  bytes.length + 2 * (request.length + sid.length + subject.length) + overhead

/** Kept in the memory of this process. @param keep bytes; the oldest go when there is no more room. */
export const createDecisionRing = ({ keep }: { keep: number }): DecisionRing => {
  /** From `first` on, oldest first. */
  let kept: (KeptDecision | undefined)[] = []
  let first = 0
  let bytes = 0
  /** Of the newest that had to go. */
  let forgotten = Number.NEGATIVE_INFINITY
  const followers = new Set<{ filter: DecisionFilter; follower: DecisionFollower }>()

  const makeRoom = () => {
    while (bytes > keep && first < kept.length) {
      bytes -= sizeOf(kept[first]!)
      forgotten = kept[first]!.time
      kept[first++] = undefined
    }
    // In steps, since moving the rest takes time.
    if (first > 1_000 && first > kept.length / 2) {
      kept = kept.slice(first)
      first = 0
    }
  }

  const repeat = (filter: DecisionFilter, follower: DecisionFollower, { since, most }: Replay) => {
    const records: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    let lost = forgotten >= since ? 1 : 0
    for (let index = kept.length - 1; index >= first && kept[index]!.time >= since; index--) {
      const one = kept[index]!
      if (!fits(one, filter)) continue
      size += one.bytes.length
      if (size > most) lost++
      else records.push(one.bytes)
    }
    if (lost > 0) follower.lost(lost)
    if (records.length > 0) follower.decisions(records.reverse(), true)
  }

  return {
    get bytes() {
      return bytes
    },
    add(one) {
      kept.push(one)
      bytes += sizeOf(one)
      makeRoom()
      for (const { filter, follower } of followers) if (fits(one, filter)) follower.decisions([one.bytes], false)
    },
    async find(filter, limit) {
      const decisions: FoundDecision[] = []
      let size = 0
      for (let index = kept.length - 1; index >= first; index--) {
        const one = kept[index]!
        if (!fits(one, filter)) continue
        size += one.bytes.length
        if (decisions.length >= limit || size > mostFound) return { decisions, more: true }
        decisions.push({ time: one.time, bytes: one.bytes })
      }
      return { decisions, more: false }
    },
    follow(filter, follower, replay) {
      const entry = { filter, follower }
      if (replay) repeat(filter, follower, replay)
      followers.add(entry)
      return () => void followers.delete(entry)
    },
  }
}
