import type { TrustedIssuers } from '../inspection/trusted-issuers.ts'

type Issuer = TrustedIssuers[number]

/** One account of all workers: the keys that all of them have, and of what is wrong the worst. */
export const mergeIssuers = (workers: readonly TrustedIssuers[]): TrustedIssuers =>
  [...Map.groupBy(workers.flat(), ({ issuer }) => issuer).values()].map(mergeIssuer)

const mergeIssuer = (all: readonly Issuer[]): Issuer => {
  const problem = all.find((one) => one.problem !== undefined)?.problem
  const revocations = mergeRevocations(all.flatMap((one) => one.revocations ?? []))
  return {
    issuer: all[0]!.issuer,
    keys: all[0]!.keys.flatMap((key) => {
      const same = all.map(({ keys }) => keys.find(({ kid }) => kid === key.kid))
      const since = same.flatMap((one) => one?.since ?? []).toSorted()
      return same.includes(undefined) ? [] : [{ ...key, since: since.at(-1)! }]
    }),
    ...(problem !== undefined && { problem }),
    ...(revocations && { revocations }),
  }
}

const mergeRevocations = (all: readonly NonNullable<Issuer['revocations']>[]): Issuer['revocations'] => {
  if (all.length === 0) return undefined
  const problem = all.find((one) => one.problem !== undefined)?.problem
  const heard = all.flatMap(({ silent }) => silent ?? [])
  return {
    entries: Math.min(...all.map(({ entries }) => entries)),
    ...(heard.length === all.length && { silent: Math.max(...heard) }),
    ...(problem !== undefined && { problem }),
  }
}
