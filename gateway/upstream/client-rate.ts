/** 1 kB/s: a byte a millisecond. */
const bytesPerMs = 1

/**
 * Whether a client that is waited for sends or reads fast enough to keep the slot of its request. It is too slow when
 * nothing moves for longer than `timeout`, or when less than 1 kB/s does over as long. All times are in ms;
 * `isTooSlow` is asked at every check of the active requests.
 */
export class ClientRate {
  readonly #timeout: number
  /**
   * When the client was first found waited for, in the window that is being measured; undefined = it is not waited for.
   */
  #from: number | undefined
  #movedAt = 0
  /** In the window, and since the last check. */
  #bytes = 0
  #moved = 0

  constructor(timeout: number) {
    this.#timeout = timeout
  }

  /** The client sent or took so many bytes. */
  moved(bytes: number): void {
    this.#moved += bytes
  }

  /** Somebody else is waited for. */
  rest(): void {
    this.#from = undefined
  }

  /**
   * @param blur how long ago the last check may have been: added to `timeout`, so that nobody is found too slow too
   * early.
   */
  isTooSlow(now: number, blur: number): boolean {
    const from = this.#from ?? now
    if (this.#from === undefined) {
      this.#begin(now)
      this.#movedAt = now
      this.#moved = 0
    }
    if (this.#moved > 0) this.#movedAt = now
    this.#bytes += this.#moved
    this.#moved = 0
    if (now - this.#movedAt >= this.#timeout + blur) return true
    const length = now - from
    if (length < this.#timeout + blur) return false
    const tooFew = this.#bytes < length * bytesPerMs
    this.#begin(now)
    return tooFew
  }

  #begin(now: number): void {
    this.#from = now
    this.#bytes = 0
  }
}
