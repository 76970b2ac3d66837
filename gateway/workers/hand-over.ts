import type { Lifecycle } from '../../platform/lifecycle.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { type PolicySet, watchPolicies } from '../../policies/decide.ts'
import { type Bundle, PolicyError, prepareEngine, writeBundle } from '../../policies/engine/index.ts'
import { portable } from '../../policies/policy-set.ts'
import type { GatewayConfig } from '../config/load.ts'
import { openPolicies, openShadow, type PolicyProvider } from '../open-policies.ts'
import type { SharedParts } from '../shared-parts.ts'
import type { PolicyBundle } from './messages.ts'

/** The rules of all workers, read and compiled here once. */
export interface HandOver {
  /** Follows what the configuration names. Throws `StartupError` when the rules cannot be used. */
  open(config: GatewayConfig, lifecycle: Lifecycle): Promise<PolicyProvider>
  /** What a worker needs for it. */
  bundlesOf(config: GatewayConfig): PolicyBundle[]
}

type Source = Parameters<typeof watchPolicies>[0]

export const createHandOver = (options: {
  shared: SharedParts
  logger: Logger
  metrics: Metrics
  opaBin: string | undefined
  /**
   * Brings newer rules to all workers, and calls `onCommit` when nothing can fail any more; rejects when one refuses.
   */
  change: (bundle: PolicyBundle, onCommit: () => void) => Promise<void>
}): HandOver => {
  const { change, ...parts } = options
  /** The newest in force, by name and path. */
  const bundles = new Map<string, PolicyBundle>()
  const keep = (bundle: PolicyBundle) => bundles.set(`${bundle.name} ${bundle.path}`, bundle)

  const watch: typeof watchPolicies = ({ isolation, ...source }) => {
    let first = true
    const openSet = async (bundle: Bundle): Promise<PolicySet> => {
      const { name = 'live', path } = source
      const handed = { name, path, bundle: writeBundle(bundle) }
      // The first one goes along with its configuration.
      if (first) keep(handed)
      else await change(handed, () => keep(handed))
      first = false
      return elsewhere(bundle, source)
    }
    return watchPolicies({ ...source, openSet })
  }

  return {
    async open(config, lifecycle) {
      const given = { ...parts, config, lifecycle, watch }
      await openShadow(given)
      return openPolicies(given)
    },
    bundlesOf({ policies: { path, shadow } }) {
      const wanted = [bundles.get(`live ${path}`), shadow === undefined ? undefined : bundles.get(`shadow ${shadow}`)]
      return wanted.filter((bundle) => bundle !== undefined)
    },
  }
}

/** Rules that the workers have. They have looked whether all that is needed is there. */
const elsewhere = (bundle: Bundle, { needed = [] }: Source): PolicySet => {
  let prepared = bundle.prepared
  return {
    revision: bundle.revision,
    entrypoints: needed,
    forThread() {
      prepared ??= prepareEngine(bundle)
      return portable(bundle, prepared)
    },
    evaluate: () => {
      throw new PolicyError('the workers have the policies')
    },
  }
}
