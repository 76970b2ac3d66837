/** Nanoseconds by unit. Days, weeks and years (of 365 days) are OPA's addition to Go's units. */
const units: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
  y: 31_536_000_000_000_000n,
}

const largest = 2n ** 63n

/** `1h15m30.5s` → nanoseconds, or `undefined` when it is no duration or over 292 years. */
export const parseDuration = (text: string): bigint | undefined => {
  const parts = /^[+-]/.test(text) ? text.slice(1) : text
  if (parts === '0') return 0n
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)[^\d.]+)+$/.test(parts)) return undefined
  let total = 0n
  for (const [, whole = '', fraction = '', unit = ''] of parts.matchAll(/(\d*)(?:\.(\d*))?([^\d.]+)/g)) {
    const size = units[unit]
    if (size === undefined || whole.length > 20) return undefined
    total += BigInt(whole || '0') * size + fractionOf(fraction, size)
    if (total > largest) return undefined
  }
  if (text.startsWith('-')) return -total
  return total < largest ? total : undefined
}

/** In doubles, as Go does it; digits that do not fit 63 bits are dropped. */
const fractionOf = (text: string, size: bigint): bigint => {
  let digits = 0n
  let scale = 1
  for (const digit of text) {
    const next = digits * 10n + BigInt(digit)
    if (next > largest) break
    digits = next
    scale *= 10
  }
  return BigInt(Math.trunc(Number(digits) * (Number(size) / scale)))
}
