import { createLifecycle } from '../platform/lifecycle.ts'
import { silentLogger } from '../platform/logger.ts'
import { createMetrics } from '../platform/metrics.ts'
import { StartupError } from '../platform/startup-error.ts'
import { type PolicySet, watchPolicies } from '../policies/decide.ts'
import { isAddress } from '../policies/origin.ts'
import type { GatewayConfig } from './config/load.ts'
import { readAuthorities, readCertificate, requireUnexpired } from './listener/certificates.ts'
import { requireLogs } from './logs/request-logs.ts'
import { openPolicies, readVerification, requireEntrypoints } from './open-policies.ts'
import { createSharedParts } from './shared-parts.ts'
import { readIdentityKeys } from './upstream/identity-assertion.ts'
import { readUpstreamsTls } from './upstream/upstream-tls.ts'

/**
 * Everything that is wrong with the files that a configuration names: policies and shadow policies that do not compile,
 * missing entrypoints, keys and certificates that cannot be used, logs that cannot be opened. Asks nothing across the
 * network, so bundles behind an address are left out. Creates no files.
 */
export const checkFiles = async (config: GatewayConfig, opaBin: string | undefined): Promise<StartupError[]> => {
  const { identity, listen, extAuthz, policies } = config
  const listeners = [listen.tls, extAuthz?.tls].filter((tls) => tls !== undefined)
  const { path, shadow, verify } = policies
  const found = await Promise.all([
    refusalOf(() => requireLogs(config)),
    ...listeners.flatMap(({ certificates, clientCa }) => [
      ...certificates.map((files) => refusalOf(async () => requireUnexpired(await readCertificate(files), Date.now()))),
      clientCa === undefined ? undefined : refusalOf(() => readAuthorities(clientCa)),
    ]),
    identity && refusalOf(() => readIdentityKeys(identity.keyFile)),
    refusalOf(() => readUpstreamsTls(config.upstreams)),
    verify && refusalOf(() => readVerification(verify)),
    isAddress(path) ? undefined : refusalOf(async () => requireEntrypoints(config, await load(config, path, opaBin))),
    // A shadow may lack entrypoints: their routes are not compared.
    shadow === undefined || isAddress(shadow) ? undefined : refusalOf(() => load(config, shadow, opaBin)),
  ])
  const told = new Set<string>()
  return found.flatMap((refusal) => {
    // A key that cannot be used is reported by each part that needs it.
    if (!refusal || told.has(refusal.message)) return []
    told.add(refusal.message)
    return [refusal]
  })
}

const refusalOf = async (attempt: () => unknown): Promise<StartupError | undefined> => {
  try {
    await attempt()
    return undefined
  } catch (error) {
    if (error instanceof StartupError) return error
    throw error
  }
}

const load = async (config: GatewayConfig, path: string, opaBin: string | undefined): Promise<PolicySet> => {
  const lifecycle = createLifecycle({ logger: silentLogger })
  const parts = {
    shared: createSharedParts(),
    lifecycle,
    logger: silentLogger,
    metrics: createMetrics(),
    opaBin,
    watch: watchPolicies,
  }
  try {
    const policies = await openPolicies({ config: { ...config, policies: { ...config.policies, path } }, ...parts })
    return policies.current()
  } finally {
    await lifecycle.stop()
  }
}
