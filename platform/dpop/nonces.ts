import { createHmac } from 'node:crypto'

/**
 * Nonces that nobody has to remember (RFC 9449 §8, §9): each is an HMAC over a slice of time, the same for all clients
 * and, with one key, in all processes. Its purpose is that a proof cannot have been made long before it is used.
 */
export interface Nonces {
  /** For the client's next proof. `now` in ms. */
  current(now: number): string
  /** `late`: still good, and about to end. Undefined: not good. */
  check(nonce: unknown, now: number): 'current' | 'late' | undefined
}

/** For so long a nonce is handed out; it is good for as long again. In ms. */
const sliceMs = 120_000

export const createNonces = (key: Uint8Array): Nonces => {
  const nonceOf = (slice: number) => createHmac('sha256', key).update(`dpop nonce ${slice}`).digest('base64url')
  let known = { slice: Number.NaN, current: '', late: '' }
  const at = (now: number) => {
    const slice = Math.floor(now / sliceMs)
    if (slice !== known.slice) known = { slice, current: nonceOf(slice), late: nonceOf(slice - 1) }
    return known
  }
  return {
    current: (now) => at(now).current,
    check(nonce, now) {
      const { current, late } = at(now)
      return nonce === current ? 'current' : nonce === late ? 'late' : undefined
    },
  }
}
