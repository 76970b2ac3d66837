/**
 * Waiting calls of many owners: whoever waits takes turns, however many calls somebody else has waiting. Bounded in
 * number and in size, for all together and for each owner.
 */
export interface FairQueue<Item> {
  /** False when it is full. */
  add(item: Item): boolean
  /** The next in turn; undefined when there is none, or none whose owner may have one. */
  take(): Item | undefined
  /** Its owner gets no turn until `resume`. */
  pause(owner: string): void
  resume(owner: string): void
  /** Those of one owner, which do not wait here any more. */
  takeAll(owner: string): Item[]
  remove(item: Item): boolean
  /** All of them. */
  drain(): Item[]
  /** Whether `take` would answer one. */
  readonly isReady: boolean
}

export const createFairQueue = <Item extends { owner: string; size: number }>(most: {
  items: number
  itemsOfOwner: number
  size: number
}): FairQueue<Item> => {
  // Owners in the order of their turns; none is empty.
  const owners = new Map<string, Item[]>()
  const paused = new Set<string>()
  let length = 0
  let size = 0

  const nextOwner = (): string | undefined => {
    for (const owner of owners.keys()) if (!paused.has(owner)) return owner
    return undefined
  }

  const left = (item: Item) => {
    length--
    size -= item.size
    return item
  }

  return {
    add(item) {
      const waiting = owners.get(item.owner) ?? []
      if (length >= most.items || waiting.length >= most.itemsOfOwner || size + item.size > most.size) return false
      owners.set(item.owner, waiting)
      waiting.push(item)
      length++
      size += item.size
      return true
    },
    take() {
      const owner = nextOwner()
      if (owner === undefined) return undefined
      const waiting = owners.get(owner)!
      owners.delete(owner)
      const item = waiting.shift()!
      if (waiting.length > 0) owners.set(owner, waiting)
      return left(item)
    },
    pause: (owner) => void paused.add(owner),
    resume: (owner) => void paused.delete(owner),
    takeAll(owner) {
      const waiting = owners.get(owner) ?? []
      owners.delete(owner)
      return waiting.map(left)
    },
    remove(item) {
      const waiting = owners.get(item.owner)
      const at = waiting?.indexOf(item) ?? -1
      if (!waiting || at === -1) return false
      waiting.splice(at, 1)
      if (waiting.length === 0) owners.delete(item.owner)
      left(item)
      return true
    },
    drain() {
      const all = [...owners.values()].flat().map(left)
      owners.clear()
      return all
    },
    get isReady() {
      return nextOwner() !== undefined
    },
  }
}
