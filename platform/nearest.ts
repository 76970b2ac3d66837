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

/** Of Damerau and Levenshtein, with swaps of neighbours only. */
const distanceOf = (one: string, other: string): number => {
  const cells = new Map<string, number>()
  const at = (left: number, right: number) =>
    left === 0 || right === 0 ? left + right : (cells.get(`${left},${right}`) ?? 0)
  for (let left = 1; left <= one.length; left++) {
    for (let right = 1; right <= other.length; right++) {
      const same = one[left - 1] === other[right - 1]
      const swapped = left > 1 && right > 1 && one[left - 1] === other[right - 2] && one[left - 2] === other[right - 1]
      const changed = at(left - 1, right - 1) + (same ? 0 : 1)
      const added = Math.min(at(left - 1, right), at(left, right - 1)) + 1
      cells.set(`${left},${right}`, Math.min(changed, added, swapped ? at(left - 2, right - 2) + 1 : added))
    }
  }
  return at(one.length, other.length)
}
