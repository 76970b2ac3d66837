/**
 * The one of `names` that `wrong` was probably meant to be: the fewest letters left out, added, changed or swapped, and
 * no more than a third of them. Undefined when none is near, or when two are equally near.
 */
export const nearest = (wrong: string, names: readonly string[]): string | undefined => {
  const near = names
    .map((name) => ({ name, distance: distanceOf(wrong.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(name.length, wrong.length) / 3)
    .sort((one, other) => one.distance - other.distance)
  return near.length > 1 && near[0]!.distance === near[1]!.distance ? undefined : near[0]?.name
}

/** `; did you mean port?`, or nothing. */
export const didYouMean = (wrong: unknown, names: readonly string[]): string => {
  const meant = typeof wrong === 'string' ? nearest(wrong, names) : undefined
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

/** Of Damerau and Levenshtein, with swaps of neighbours only. */
const distanceOf = (one: string, other: string): number => {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, index) => index)]
  for (let left = 1; left <= one.length; left++) {
    const row = [left]
    for (let right = 1; right <= other.length; right++) {
      const same = one[left - 1] === other[right - 1]
      const swapped = left > 1 && right > 1 && one[left - 1] === other[right - 2] && one[left - 2] === other[right - 1]
      row.push(
        Math.min(
          rows[left - 1]![right]! + 1,
          row[right - 1]! + 1,
          rows[left - 1]![right - 1]! + (same ? 0 : 1),
          swapped ? rows[left - 2]![right - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    rows.push(row)
  }
  return rows[one.length]![other.length]!
}
