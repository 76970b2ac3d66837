/**
 * Every place where `part` begins in `whole`, overlapping ones too, in a time that is linear in both (Knuth, Morris,
 * Pratt): `String.indexOf` takes that of their product where the text is like the part. None for an empty part.
 */
export const occurrences = (whole: ArrayLike<unknown>, part: ArrayLike<unknown>): number[] => {
  const found: number[] = []
  if (part.length === 0) return found
  const borders = bordersOf(part)
  let matched = 0
  for (let at = 0; at < whole.length; at++) {
    while (matched > 0 && whole[at] !== part[matched]) matched = borders[matched - 1] ?? 0
    if (whole[at] === part[matched]) matched++
    if (matched < part.length) continue
    found.push(at - matched + 1)
    matched = borders[matched - 1] ?? 0
  }
  return found
}

/** For each beginning of the part, how much of its end is also a shorter beginning of it. */
const bordersOf = (part: ArrayLike<unknown>): Uint32Array => {
  const borders = new Uint32Array(part.length)
  let matched = 0
  for (let at = 1; at < part.length; at++) {
    while (matched > 0 && part[at] !== part[matched]) matched = borders[matched - 1] ?? 0
    if (part[at] === part[matched]) matched++
    borders[at] = matched
  }
  return borders
}

/** Where a text stands in another one. */
export const indexesOf = (text: string, part: string): number[] => occurrences(unitsOf(text), unitsOf(part))

const unitsOf = (text: string): Uint16Array => {
  const units = new Uint16Array(text.length)
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at)
  return units
}

/** Like `text.split(separator)`; the separator is not empty. */
export const splitText = (text: string, separator: string): string[] => {
  const parts: string[] = []
  let from = 0
  for (const at of indexesOf(text, separator)) {
    if (at < from) continue
    parts.push(text.slice(from, at))
    from = at + separator.length
  }
  parts.push(text.slice(from))
  return parts
}
