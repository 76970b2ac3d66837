import { setTimeout as delay } from 'node:timers/promises'
import { PolicyError } from './engine/policy-error.ts'
import { loadPolicies, type PolicySet, type PolicySource, policyFilesState } from './policy-set.ts'

export interface WatchedPolicies {
  /** The last good set: ask each time, it may have been replaced. */
  current(): PolicySet
  /** `lastError`: why what is on disk now is not what runs; absent when it is. */
  status(): { revision: string; lastError?: string }
  /** Loads what is there now, changed or not; a failure keeps the last good set, as ever. For operators who say when. */
  reload(): Promise<void>
  /** Stops watching; the last good set keeps working. */
  close(): Promise<void>
}

/**
 * How often the files' state is looked at. Milliseconds. Polling rather than `fs.watch`, which misses replaced links
 * (Kubernetes ConfigMaps) and network file systems; a large folder is looked at less often, so that it costs at most 2 % of one core.
 */
const pollEvery = 300
const pollShare = 50

/**
 * Loads policies and follows their files: a change is compiled and swapped in within a second, whole or not at all. Throws
 * `PolicyError` when the first load fails; later failures keep the last good set and are told by `status` and the log.
 */
export const watchPolicies = async (
  source: PolicySource & {
    /** What later sets must hold too: rules that compile but lack one of these are not swapped in. The first set is the caller's to check. */
    needed?: readonly string[]
    /** Called after every swap. */
    onChange?: (set: PolicySet) => void
  },
): Promise<WatchedPolicies> => {
  let seen = await stateOf(source.path)
  let set = await loadPolicies(source)
  let lastError: string | undefined

  const load = async (): Promise<void> => {
    try {
      set = withEntrypoints(await loadPolicies(source), source.needed)
      lastError = undefined
      source.logger.info({ path: source.path, revision: set.revision }, 'policies reloaded')
      source.onChange?.(set)
    } catch (error) {
      lastError = (error as Error).message
      source.logger.error(
        { path: source.path, error: lastError, revision: set.revision },
        'policies not reloaded; the last good ones keep running',
      )
    }
  }

  // One at a time and in order, so that an older state never replaces a newer one.
  let loading: Promise<void> = Promise.resolve()
  const reload = (): Promise<void> => {
    loading = loading.then(load)
    return loading
  }

  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    let pause = pollEvery
    while (!stop.signal.aborted) {
      await delay(pause, undefined, { signal: stop.signal, ref: false }).catch(() => {})
      if (stop.signal.aborted) return
      const start = performance.now()
      const state = await stateOf(source.path)
      pause = Math.max(pollEvery, (performance.now() - start) * pollShare)
      if (state === seen) continue
      seen = state
      await reload()
    }
  }
  const following = follow()

  return {
    current: () => set,
    status: () => ({ revision: set.revision, ...(lastError !== undefined && { lastError }) }),
    reload,
    async close() {
      stop.abort()
      await following
      await loading
    },
  }
}

const withEntrypoints = (set: PolicySet, needed: readonly string[] = []): PolicySet => {
  const missing = needed.filter((entrypoint) => !set.entrypoints.includes(entrypoint))
  if (missing.length > 0) throw new PolicyError(`the policies lack these entrypoints: ${missing.join(', ')}`)
  return set
}

/** Unreadable is a state too: entering it is reported, leaving it loads again. */
const stateOf = (path: string): Promise<string> => policyFilesState(path).catch((error: Error) => error.message)
