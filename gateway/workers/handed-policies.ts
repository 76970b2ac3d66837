import type { Metrics } from '../../platform/metrics.ts'
import type { PolicySet, WatchedPolicies, watchPolicies } from '../../policies/decide.ts'
import { openBundle, PolicyError } from '../../policies/engine/index.ts'
import { policySet } from '../../policies/policy-set.ts'
import type { PolicyBundle } from './messages.ts'

type Source = Parameters<typeof watchPolicies>[0]

/** The rules of a worker: they come compiled from the primary process, which follows their source. */
export interface HandedPolicies {
  /** Takes the place of the `watchPolicies` that looks at files. */
  watch: typeof watchPolicies
  /** What gateways that are built from now on begin with. */
  hand(bundles: readonly PolicyBundle[]): void
  /** Opens newer ones wherever they are used. Throws `PolicyError`, and nothing has changed. */
  prepare(bundles: readonly PolicyBundle[]): Promise<PreparedPolicies>
}

/** One of both is called. */
export interface PreparedPolicies {
  takeOver(): void
  discard(): void
}

interface Used {
  source: Source
  set: PolicySet
}

const keyOf = ({ name = 'live', path }: { name?: string; path: string }): string => `${name} ${path}`

export const createHandedPolicies = ({ metrics }: { metrics: Metrics }): HandedPolicies => {
  const handed = new Map<string, Uint8Array>()
  const used = new Set<Used>()
  /** What is being prepared; each takes whoever begins with the rules of before meanwhile. */
  const preparing = new Set<(one: Used) => Promise<void>>()
  const usedUp = metrics.counter(
    'surrogate_policies_units_used_up_total',
    'Evaluations that were ended because they used up their units of work',
    ['policies', 'entrypoint'],
  )

  const open = async (source: Source, bytes: Uint8Array): Promise<PolicySet> => {
    const onUsedUp = (entrypoint: string) => usedUp.inc({ policies: source.name ?? 'live', entrypoint })
    return policySet(await openBundle(bytes), { ...source, onUsedUp })
  }

  const requireNeeded = ({ needed = [] }: Source, { entrypoints }: PolicySet) => {
    const missing = needed.filter((entrypoint) => !entrypoints.includes(entrypoint))
    if (missing.length > 0) throw new PolicyError(`the policies lack these entrypoints: ${missing.join(', ')}`)
  }

  const hand = (bundles: readonly PolicyBundle[]) => {
    for (const { bundle, ...place } of bundles) handed.set(keyOf(place), bundle)
  }

  return {
    hand,
    async watch(source): Promise<WatchedPolicies> {
      const key = keyOf(source)
      const begin = async (): Promise<Used> => {
        const bytes = handed.get(key)
        if (!bytes && !source.startWith) throw new PolicyError('the primary process has handed no policies over')
        const set = bytes ? await open(source, bytes) : source.startWith!
        // Others may have taken over while these were opened.
        if (handed.get(key) !== bytes) {
          void set.close?.()
          return begin()
        }
        const one = { source, set }
        used.add(one)
        return one
      }
      const one = await begin()
      const close = async () => {
        used.delete(one)
        await one.set.close?.()
      }
      try {
        for (const include of preparing) await include(one)
      } catch (error) {
        await close()
        throw error
      }
      return {
        current: () => one.set,
        status: () => ({ revision: one.set.revision }),
        reload: async () => {},
        close,
      }
    },
    async prepare(bundles) {
      let state: 'prepared' | 'taken over' | 'discarded' = 'prepared'
      const opened: { one: Used; set: PolicySet }[] = []
      const replace = ({ one, set }: { one: Used; set: PolicySet }) => {
        if (!used.has(one)) return void set.close?.()
        void one.set.close?.()
        one.set = set
        one.source.onChange?.(set)
      }
      const include = async (one: Used) => {
        for (const { bundle, ...place } of bundles) {
          if (keyOf(one.source) !== keyOf(place)) continue
          const set = await open(one.source, bundle)
          if (state === 'discarded') return void set.close?.()
          opened.push({ one, set })
          requireNeeded(one.source, set)
          // Others may have taken over since, and include it themselves.
          if (state === 'taken over' && handed.get(keyOf(place)) === bundle) replace({ one, set })
          else if (state === 'taken over') void set.close?.()
        }
      }
      const discard = () => {
        state = 'discarded'
        preparing.delete(include)
        for (const { set } of opened.splice(0)) void set.close?.()
      }
      preparing.add(include)
      try {
        for (const one of [...used]) await include(one)
      } catch (error) {
        discard()
        throw error
      }
      return {
        discard,
        takeOver() {
          state = 'taken over'
          preparing.delete(include)
          hand(bundles)
          opened.forEach(replace)
        },
      }
    },
  }
}
