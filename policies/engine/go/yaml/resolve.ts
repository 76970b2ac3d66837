/** What go-yaml takes an unquoted text for: YAML 1.1 with some habits of its own. */

const words = new Map<string, boolean | null>()
for (const word of ['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'true', 'True', 'TRUE']) words.set(word, true)
for (const word of ['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'false', 'False', 'FALSE']) words.set(word, false)
for (const word of ['', '~', 'null', 'Null', 'NULL']) words.set(word, null)

const notFinite = /^(?:[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/
const integers: readonly [RegExp, string][] = [
  [/^([-+]?)0[xX]([0-9a-fA-F]+)$/, '0x'],
  [/^([-+]?)0[bB]([01]+)$/, '0b'],
  [/^([-+]?)0[oO]?([0-7]+)$/, '0o'],
  [/^([-+]?)(0|[1-9][0-9]*)$/, ''],
]

/** Signed and unsigned 64 bits. */
const fits = (value: bigint): boolean => value >= -(2n ** 63n) && value < 2n ** 64n

const integerOf = (text: string): bigint | undefined => {
  for (const [pattern, prefix] of integers) {
    const [, sign, digits] = pattern.exec(text) ?? []
    if (digits === undefined) continue
    const value = BigInt(prefix + digits)
    return fits(sign === '-' ? -value : value) ? (sign === '-' ? -value : value) : undefined
  }
  return undefined
}

/** `undefined`: it is just a text. Infinite numbers and NaN are numbers here. */
export const resolvePlain = (text: string): boolean | null | bigint | number | undefined => {
  if (words.has(text)) return words.get(text)
  if (notFinite.test(text)) return Number.NaN
  if (!/^[-+.0-9]/.test(text)) return undefined
  const digits = text.replaceAll('_', '')
  const integer = integerOf(digits)
  if (integer !== undefined) return integer
  const number = float.test(digits) ? Number(digits) : Number.NaN
  return Number.isFinite(number) ? number : undefined
}

const timestamp = /^[0-9]{4}-(?:[0-9]{2}-[0-9]{2}$|[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2})/
/** YAML 1.1 reads these as numbers to the base 60. */
const base60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/

/** Whether a text must be quoted so that nobody reads it as something else. */
export const needsQuotes = (text: string): boolean =>
  resolvePlain(text) !== undefined || timestamp.test(text) || base60.test(text)
