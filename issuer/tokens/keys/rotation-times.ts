/**
 * The times of a staged rotation, in seconds. Verifiers may keep the JWKS for `maxAgeSeconds`; an instance that hears
 * of no change reads the keys every `pollSeconds`. Whoever fetched the old set at the last possible moment has fetched
 * the new one before its key signs.
 */
export const maxAgeSeconds = 300
export const pollSeconds = 20

/** How long a key is published before it signs. The rest is for clocks, timers and the network. */
export const publishSeconds = 330

/** The `max-age` for keys that were read this many seconds ago. It shrinks while the database cannot be read. */
export const maxAgeAfter = (secondsSinceRead: number): number =>
  Math.max(0, Math.min(maxAgeSeconds, Math.floor(publishSeconds - 5 - secondsSinceRead)))
