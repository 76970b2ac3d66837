import type { GoValue } from './sprintf.ts'

export const unitsForVerb = 30
const unitsForPadding = 4

/** Units to write a value. Doubles are written out exactly: the further from 1, the more digits. */
export const costOf = (
  argument: GoValue,
  verb: string,
  { width = 0, precision = 0, sharp }: { width?: number | undefined; precision?: number | undefined; sharp: boolean },
): number => {
  const padding = unitsForVerb + unitsForPadding * (Math.abs(width) + precision)
  if (argument.type === 'float64') return padding + Math.ceil(Math.abs(Math.log2(Math.abs(argument.value) || 1)))
  if (typeof argument.value === 'bigint') return padding + 10 * argument.value.toString(16).length
  if (typeof argument.value !== 'string') return padding
  const isCopied = (verb === 's' || verb === 'v') && !sharp && width + precision === 0
  return padding + argument.value.length * (isCopied ? 1 : 12)
}
