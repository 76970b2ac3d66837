/**
 * The time, as an argument: JWT times, back-off and caches take it from here; expiry in SQL uses the database's
 * `now()`.
 */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()

/** NumericDate of RFC 7519 §2: whole seconds since the epoch. */
export const toSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)
