import { setTimeout as delay } from 'node:timers/promises'
import type { Metrics } from '../platform/metrics.ts'
import { type Bundle, type Compiled, PolicyError } from './engine/index.ts'
import { type PolicyFiles, policyOrigin } from './origin.ts'
import { obtainBundle, type PolicySet, type PolicySource, policySet } from './policy-set.ts'

export interface WatchedPolicies {
  /** The last good set: ask each time, it may have been replaced. */
  current(): PolicySet
  /** `lastError`: why what is at the source now is not what runs; absent when it is. */
  status(): { revision: string; lastError?: string }
  /** Loads what is at the source now, changed or not, as operators ask for it. A failure keeps the last good set. */
  reload(): Promise<void>
  /** Stops watching; the last good set keeps working, its threads excepted. */
  close(): Promise<void>
}

/**
 * Loads policies and follows them: a changed file is compiled and swapped in within a second, a new bundle at the next
 * poll, whole or not at all. Throws `PolicyError` when the first load fails; later failures keep the last good set and
 * are told by `status`, the log and `surrogate_policies_stale`. A bundle with a lower serial number than the running
 * one is refused, as is one without where that has one.
 */
export const watchPolicies = async (
  source: PolicySource & {
    /**
     * What later sets must hold too: rules that compile but lack one of these are not swapped in. The first set is the
     * caller's to check.
     */
    needed?: readonly string[]
    /**
     * Entrypoints that a set may do without. One that had such an entrypoint is not followed by one without, and rules
     * in its package are refused while nothing there is the entrypoint: they would be asked by nobody.
     */
    optional?: readonly string[]
    /** Called after every swap. */
    onChange?: (set: PolicySet) => void
    /**
     * Runs while there is nothing better: then a first load that fails is no more than a later one. Default: it throws.
     */
    startWith?: PolicySet
    /**
     * Makes a set of each bundle that is to be swapped in; when it rejects, the last good set stays. Default: on this
     * thread.
     */
    openSet?: (bundle: Bundle) => Promise<PolicySet>
    metrics?: Metrics | undefined
    /** For metrics: which of a process's policies these are. Default `live`. */
    name?: string
  },
): Promise<WatchedPolicies> => {
  const { path, logger, needed = [], optional = [], metrics, name = 'live' } = source
  const origin = policyOrigin(path, source.remote)
  const labels = ['policies', 'outcome'] as const
  const reloads = metrics?.counter('surrogate_policies_reloads_total', 'Policies loaded again, or not', labels)
  const usedUp = metrics?.counter(
    'surrogate_policies_units_used_up_total',
    'Evaluations that were ended because they used up their units of work',
    ['policies', 'entrypoint'],
  )
  const onUsedUp = (entrypoint: string) => usedUp?.inc({ policies: name, entrypoint })
  const openSet = source.openSet ?? ((bundle: Bundle) => policySet(bundle, { ...source, onUsedUp }))
  const stale = metrics?.gauge('surrogate_policies_stale', '1 while newer policies cannot be used', ['policies'])
  stale?.set({ policies: name }, 0)

  let serial: number | undefined
  let compiled: Compiled | undefined
  let lastError: string | undefined
  let failures = 0
  /** Whether the files that were read last could not be used: finding the same ones again is no success. */
  let refused = false

  /** A folder or file that cannot be read counts as refused; a server that cannot be reached does not. */
  const read = <Files>(from: () => Promise<Files>): Promise<Files> => {
    refused = !origin.transient
    return from()
  }

  const open = async (files: PolicyFiles, lacking: readonly string[]): Promise<PolicySet> => {
    refused = true
    const bundle = await obtainBundle(source, files, compiled)
    refuseRollback(bundle, serial)
    const opened = await openSet(bundle)
    const unasked = optional.filter((entrypoint) => hasRulesOf(files, entrypoint))
    const missing = [...lacking, ...unasked].filter((entrypoint) => !opened.entrypoints.includes(entrypoint))
    if (missing.length > 0) {
      await opened.close?.()
      throw new PolicyError(`the policies lack these entrypoints: ${missing.join(', ')}`)
    }
    refused = false
    serial = bundle.serial
    compiled = bundle.built && { wasm: bundle.wasm, built: bundle.built }
    if (files.bundle) await persist(files.bundle)
    return opened
  }

  const persist = async (bundle: Uint8Array): Promise<void> => {
    await origin.persist?.(bundle).catch((error: unknown) => {
      logger.warn({ path, err: error }, 'the policies cannot be kept for the next start')
    })
  }

  const failed = (error: Error, revision: string): void => {
    failures++
    reloads?.inc({ policies: name, outcome: 'failed' })
    stale?.set({ policies: name }, 1)
    // An unreachable server is logged once, not at every poll.
    if (origin.transient && error.message === lastError) return
    lastError = error.message
    const issues = error instanceof PolicyError && error.issues.length > 0 ? { issues: error.issues } : {}
    logger.error(
      { path, error: lastError, ...issues, revision },
      'policies not reloaded; the last good ones keep running',
    )
  }

  const succeeded = (): void => {
    failures = 0
    lastError = undefined
    stale?.set({ policies: name }, 0)
  }

  /**
   * The policies at the source or, when they cannot be used, those persisted from the last run. The serial number of
   * the persisted ones counts in either case.
   */
  const first = async (): Promise<PolicySet> => {
    const persisted = await origin.persisted?.()
    const before = persisted && (await obtainBundle(source, { bundle: persisted }).catch(() => undefined))
    serial = before?.serial
    try {
      return await open(await read(origin.read), [])
    } catch (error) {
      const instead = before ?? source.startWith
      if (!instead) throw error
      failed(error as Error, instead.revision)
      return 'evaluate' in instead ? instead : openSet(instead)
    }
  }

  const load = async (from: () => Promise<PolicyFiles | undefined>): Promise<void> => {
    const refusedBefore = refused
    try {
      const files = await read(from)
      if (!files) {
        refused = refusedBefore
        if (!refused && failures > 0) succeeded()
        return
      }
      const kept = optional.filter((entrypoint) => set.entrypoints.includes(entrypoint))
      const opened = await open(files, [...needed, ...kept])
      const replaced = set
      set = opened
      succeeded()
      reloads?.inc({ policies: name, outcome: 'loaded' })
      logger.info({ path, revision: set.revision }, 'policies reloaded')
      source.onChange?.(set)
      void replaced.close?.()
    } catch (error) {
      // Files that were refused stay refused while the server cannot be reached.
      refused ||= refusedBefore
      failed(error as Error, set.revision)
    }
  }

  const opening = first()
  opening.catch(() => origin.close())
  let set = await opening

  // One at a time and in order, so that an older state never replaces a newer one.
  let loading: Promise<void> = Promise.resolve()
  const enqueue = (read: () => Promise<PolicyFiles | undefined>): Promise<void> => {
    loading = loading.then(() => load(read))
    return loading
  }

  const stop = new AbortController()
  const follow = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await delay(origin.pause(failures), undefined, { signal: stop.signal, ref: false }).catch(() => {})
      if (!stop.signal.aborted) await enqueue(origin.next)
    }
  }
  const following = follow()

  return {
    current: () => set,
    status: () => ({ revision: set.revision, ...(lastError !== undefined && { lastError }) }),
    reload: () => enqueue(origin.read),
    async close() {
      stop.abort()
      await origin.close()
      await following
      await loading
      await set.close?.()
    },
  }
}

/** Whether a file is in the package of the entrypoint. Of bundles this is not known. */
const hasRulesOf = ({ sources }: PolicyFiles, entrypoint: string): boolean => {
  const packageName = entrypoint.split('/').slice(0, -1).join('\\.')
  const line = new RegExp(`^package[ \\t]+${packageName}[ \\t]*(?:#.*)?$`, 'm')
  return sources !== undefined && [...sources.values()].some((text) => line.test(Buffer.from(text).toString()))
}

const refuseRollback = ({ serial, revision }: Bundle, running: number | undefined): void => {
  if (running === undefined || (serial !== undefined && serial >= running)) return
  const what = serial === undefined ? 'no serial number' : `the serial number ${serial}`
  throw new PolicyError(`the bundle ${revision} has ${what}, which is older than ${running}, the running one's`)
}
