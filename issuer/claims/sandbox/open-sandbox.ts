import type { Lifecycle } from '../../../platform/lifecycle.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { type ClaimsFetchOptions, claimsFetchDefaults, createClaimsFetch } from './outbound-fetch.ts'
import { type ClaimsSandbox, createClaimsSandbox } from './sandbox.ts'

/** How scripts of custom claims are run. */
export interface SandboxSettings {
  workers?: number | undefined
  fetch: ClaimsFetchOptions
}

export interface SandboxDependencies {
  settings: SandboxSettings | undefined
  logger: Logger
  metrics: Metrics
  onStop: Lifecycle['onStop']
}

/** Where scripts run, with what they may reach. There are no threads until there is a script. */
export const openSandbox = ({ settings, logger, metrics, onStop }: SandboxDependencies): ClaimsSandbox => {
  const { workers, fetch = claimsFetchDefaults } = settings ?? {}
  const claimsFetch = fetch.hosts.length > 0 ? createClaimsFetch(fetch) : undefined
  if (claimsFetch) onStop('requests of scripts', () => claimsFetch.close())
  const penalties = metrics.counter(
    'surrogate_claims_served_apart_total',
    'Times that a client came to be served apart because its scripts are slow or go beyond limits.',
  )
  const sandbox = createClaimsSandbox({
    workers,
    fetch: claimsFetch?.fetch,
    onPenalty(clientId) {
      penalties.inc()
      logger.warn({ clientId }, 'custom claims scripts of a client are slow or go beyond limits: it is served apart')
    },
    onThreadEnd: (reason) => logger.warn({ reason }, 'a thread of the custom claims sandbox ended'),
  })
  onStop('custom claims sandbox', () => sandbox.close())
  return sandbox
}
