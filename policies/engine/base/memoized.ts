/**
 * `make` with a memory of its latest results, at most `most` of them: callers may choose the keys, so the oldest one
 * makes room. What throws, or gives `undefined`, is not remembered.
 */
export const memoized = <Result>(most: number, make: (key: string) => Result): ((key: string) => Result) => {
  const results = new Map<string, Result>()
  return (key) => {
    const known = results.get(key)
    if (known !== undefined) return known
    const made = make(key)
    if (made === undefined) return made
    for (const oldest of results.keys()) {
      if (results.size < most) break
      results.delete(oldest)
    }
    results.set(key, made)
    return made
  }
}
