import { createLifecycle } from '../platform/lifecycle.ts'
import { silentLogger } from '../platform/logger.ts'
import { createMetrics } from '../platform/metrics.ts'
import { StartupError } from '../platform/startup-error.ts'
import { type PolicySet, watchPolicies } from '../policies/decide.ts'
import { isAddress } from '../policies/origin.ts'
import type { GatewayConfig } from './config/load.ts'
import type { TlsSettings } from './config/settings/listen.ts'
import { readAuthorities, readCertificate, requireUnexpired } from './listener/certificates.ts'
import { requireLogs } from './logs/request-logs.ts'
import { openPolicies, readVerification, requireEntrypoints } from './open-policies.ts'
import { createSharedParts } from './shared-parts.ts'
import { readIdentityKeys } from './upstream/identity-assertion.ts'
import { readUpstreamsTls } from './upstream/upstream-tls.ts'

/**
 * Everything that is wrong with the files that a configuration names: policies and shadow policies that do not compile,
 * missing entrypoints, keys and certificates that cannot be used, logs that cannot be opened; each as
 * `file:line:column: message` of the member that names the file. Asks nothing across the network, so bundles behind an
 * address are left out. Creates no files.
 */
export const checkFiles = async (config: GatewayConfig, opaBin: string | undefined): Promise<StartupError[]> => {
  const found = await Promise.all(
    checksOf(config, opaBin).map(async ({ at, attempt }) => ({ at, refusal: await refusalOf(attempt) })),
  )
  const told = new Set<string>()
  return found.flatMap(({ at, refusal }) => {
    // A key that cannot be used is reported by each part that needs it.
    if (!refusal || told.has(refusal.message)) return []
    told.add(refusal.message)
    const { message, hint, cause } = refusal
    return [new StartupError(`${config.placeOf(at)}: ${message}`, { hint, cause })]
  })
}

interface FileCheck {
  /** The member that names the file. */
  at: readonly PropertyKey[]
  attempt: () => unknown
}

const checksOf = (config: GatewayConfig, opaBin: string | undefined): FileCheck[] => {
  const { identity, decisionLog, accessLog, upstreams } = config
  const { path, shadow, verify } = config.policies
  const keys = verify?.keys ?? []
  return [
    { at: ['decisionLog', 'to'], attempt: () => requireLogs({ decisionLog }) },
    { at: ['accessLog', 'to'], attempt: () => requireLogs({ accessLog }) },
    ...(['listen', 'extAuthz', 'inspection'] as const).flatMap((name) => tlsChecks(name, config[name]?.tls)),
    ...(identity ? [{ at: ['identity', 'keyFile'], attempt: () => readIdentityKeys(identity.keyFile) }] : []),
    ...Object.entries(upstreams).map(([name, upstream]) => ({
      at: ['upstreams', name, 'tls'],
      attempt: () => readUpstreamsTls({ [name]: upstream }),
    })),
    ...keys.map((key, index) => ({
      at: ['policies', 'verify', 'keys', index, 'file'],
      attempt: () => readVerification({ ...verify, keys: [key] }),
    })),
    ...(isAddress(path)
      ? []
      : [
          {
            at: ['policies', 'path'],
            attempt: async () => requireEntrypoints(config, await load(config, path, opaBin)),
          },
        ]),
    // A shadow may lack entrypoints: their routes are not compared.
    ...(shadow === undefined || isAddress(shadow)
      ? []
      : [{ at: ['policies', 'shadow'], attempt: () => load(config, shadow, opaBin) }]),
  ]
}

const tlsChecks = (listener: string, tls: TlsSettings | undefined): FileCheck[] => {
  if (!tls) return []
  const { certificates, clientCa } = tls
  return [
    ...certificates.map((files, index) => ({
      at: [listener, 'tls', 'certificates', index],
      attempt: async () => requireUnexpired(await readCertificate(files), Date.now()),
    })),
    ...(clientCa === undefined
      ? []
      : [{ at: [listener, 'tls', 'clientCa'], attempt: () => readAuthorities(clientCa) }]),
  ]
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
