import { setPriority } from 'node:os'

/**
 * Lets others go first where they need the processor: `nice` from 0 to 19, for this thread and what it starts. Best
 * effort (a sandbox may not allow it), and there is no way back without privileges. Linux only: elsewhere it would be
 * of the whole process.
 */
export const lowerPriority = (nice: number): void => {
  try {
    if (process.platform === 'linux' && nice > 0) setPriority(nice)
  } catch {}
}
