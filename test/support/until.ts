import { vi } from 'vitest'

/**
 * Waits until a check passes, and answers what it answers: asked every 10 ms, because an idle machine is quick, and for
 * 25 s, because a loaded one is not. `expect.poll` has the same patience.
 */
export const until = <Result>(check: () => Result | Promise<Result>, timeout = 25_000): Promise<Result> =>
  vi.waitFor(check, { interval: 10, timeout })

/** Waits until a figure stays the same: whatever lies on its way is full. */
export const settled = async (figure: () => number): Promise<void> => {
  let before = Number.NaN
  await vi.waitFor(
    () => {
      const now = figure()
      const same = now === before
      before = now
      if (!same) throw new Error(`It still changes: ${now}`)
    },
    { interval: 200, timeout: 25_000 },
  )
}
