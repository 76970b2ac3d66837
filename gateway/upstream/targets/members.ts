import type { UsedTarget } from './used-target.ts'

/** A target with what gives its parts back. */
export interface OpenedTarget {
  readonly target: UsedTarget
  readonly release: () => Promise<void>
}

/** The targets of one configuration, as names change their addresses. */
export interface Members {
  /** Those of `wanted`, by their keys; others get no new requests from now on. */
  set<Wanted extends { key: string }>(wanted: readonly Wanted[], open: (one: Wanted) => OpenedTarget): UsedTarget[]
  close(): Promise<void>
}

interface Member extends OpenedTarget {
  /** Of one that leaves. */
  timer?: NodeJS.Timeout
}

/**
 * One that leaves is kept for `remember`, ms: a name that changes to and fro finds its targets again, with what is known
 * of them. Then it is released, once its last request has ended.
 */
export const createMembers = (options: { remember: number; onLeave: (target: UsedTarget) => void }): Members => {
  const { remember, onLeave } = options
  let current = new Map<string, Member>()
  const leaving = new Map<string, Member>()
  /** All, those too that only finish what is with them. */
  const unreleased = new Set<Member>()

  const leave = (key: string, member: Member) => {
    const release = () => {
      unreleased.delete(member)
      void member.release()
    }
    member.timer = setTimeout(() => {
      leaving.delete(key)
      if (member.target.idle) release()
      else member.target.onIdle = release
    }, remember).unref()
    leaving.set(key, member)
    onLeave(member.target)
  }

  const comeBack = (key: string): Member | undefined => {
    const found = leaving.get(key)
    clearTimeout(found?.timer)
    leaving.delete(key)
    return found
  }

  return {
    set(wanted, open) {
      const next = new Map<string, Member>()
      for (const one of wanted) {
        const member = current.get(one.key) ?? comeBack(one.key) ?? open(one)
        unreleased.add(member)
        next.set(one.key, member)
      }
      for (const [key, member] of current) if (!next.has(key)) leave(key, member)
      current = next
      return [...next.values()].map(({ target }) => target)
    },
    async close() {
      for (const { timer } of unreleased) clearTimeout(timer)
      await Promise.all([...unreleased].map(({ release }) => release()))
    },
  }
}
