/** A request that holds a slot of its upstream. */
export interface ActiveRequest {
  /** Kept by `ActiveRequests`: its index there; -1 = it holds no slot. */
  place: number
  /** Ends the request when whoever it waits for has been still for too long. Called every `checkInterval`. */
  check(): void
}

/** The requests that hold a slot of an upstream now, in no order. */
export interface ActiveRequests {
  readonly size: number
  add(request: ActiveRequest): void
  /** Whether it is in there or not. */
  remove(request: ActiveRequest): void
  /** `visit` may remove the one that it is given. */
  forEach(visit: (request: ActiveRequest) => void): void
}

/**
 * An array; removing an item moves the last item into its place. Not a `Set`: V8 links a set's outgrown tables, so
 * later entries survive until a full collection (measured: half of all requests, a sixth of a request's CPU).
 */
export const createActiveRequests = (): ActiveRequests => {
  const list: ActiveRequest[] = []
  return {
    get size() {
      return list.length
    },
    add(request) {
      request.place = list.length
      list.push(request)
    },
    remove(request) {
      const { place } = request
      if (place < 0) return
      request.place = -1
      const last = list.pop()
      if (!last || last === request) return
      list[place] = last
      last.place = place
    },
    forEach(visit) {
      // From the end: whoever takes the place of a removed one was visited before.
      for (let index = list.length - 1; index >= 0; index--) {
        const request = list[index]
        if (request) visit(request)
      }
    },
  }
}
