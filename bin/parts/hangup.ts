import type { Lifecycle } from '../../platform/lifecycle.ts'

/**
 * Hears SIGHUP from now until everything has stopped: one that nobody hears ends the process. What is returned takes
 * what to do about it, once that can be done, and does it at once when one has come before.
 */
export const hearHangups = (lifecycle: Lifecycle): ((reload: () => void) => void) => {
  let missed = false
  let reload = () => {
    missed = true
  }
  const onHangup = () => reload()
  process.on('SIGHUP', onHangup)
  lifecycle.onStop('SIGHUP', () => void process.off('SIGHUP', onHangup))
  return (next) => {
    reload = next
    if (missed) next()
  }
}
