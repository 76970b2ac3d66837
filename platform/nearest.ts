/**
 * The one of `names` that `wrong` was probably meant to be: the fewest letters left out, added, changed or swapped, and
 * no more than a third of them. Undefined when none is near, or when two are equally near.
 */
export const nearest = (wrong: string, names: readonly string[]): string | undefined => {
  const [first, second] = names
    .map((name) => ({ name, distance: distanceOf(wrong.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(name.length, wrong.length) / 3)
    .sort((one, other) => one.distance - other.distance)
  return first?.distance === second?.distance ? undefined : first?.name
}

/** `; did you mean port?`, or nothing. */
export const didYouMean = (wrong: unknown, names: readonly string[]): string => {
  const meant = typeof wrong === 'string' ? nearest(wrong, names) : undefined
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

/** Texts longer than this are not compared. In characters. */
const longestCompared = 128

/**
 * How many letters differ when one may be the other misspelt: a letter is wrong, or no more than a third of them.
 * Undefined when it is another word.
 */
export const misspelling = (one: string, other: string): number | undefined => {
  const longer = Math.max(one.length, other.length)
  const most = Math.max(1, Math.floor(longer / 3))
  if (longer > longestCompared || Math.abs(one.length - other.length) > most) return undefined
  const distance = distanceOf(one.toLowerCase(), other.toLowerCase())
  return distance <= most ? distance : undefined
}

/** Of Damerau and Levenshtein, with swaps of neighbours only. */
const distanceOf = (one: string, other: string): number => {
  const width = other.length + 1
  const cells = new Uint16Array((one.length + 1) * width)
  for (let right = 1; right < width; right++) cells[right] = right
  for (let left = 1; left <= one.length; left++) {
    const row = left * width
    cells[row] = left
    for (let right = 1; right < width; right++) {
      const at = row + right
      const same = one.charCodeAt(left - 1) === other.charCodeAt(right - 1)
      const changed = cells[at - width - 1]! + (same ? 0 : 1)
      const added = Math.min(cells[at - width]!, cells[at - 1]!) + 1
      cells[at] = Math.min(changed, added)
      const swapped =
        left > 1 &&
        right > 1 &&
        one.charCodeAt(left - 1) === other.charCodeAt(right - 2) &&
        one.charCodeAt(left - 2) === other.charCodeAt(right - 1)
      if (swapped) cells[at] = Math.min(cells[at]!, cells[at - 2 * width - 2]! + 1)
    }
  }
  return cells[one.length * width + other.length]!
}
