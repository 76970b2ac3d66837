import { createPublicKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { HealthResult } from '../platform/health.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { StartupError } from '../platform/startup-error.ts'
import type { PolicySet, watchPolicies } from '../policies/decide.ts'
import type { Verification } from '../policies/engine/index.ts'
import { createShadow, type Shadow } from '../policies/shadow.ts'
import { largestInput } from './config/largest-input.ts'
import type { GatewayConfig } from './config/load.ts'
import { type SharedParts, usedBy } from './shared-parts.ts'

/** Where decisions come from: a watched folder, file or address, or a fixed set behind a function. */
export interface PolicyProvider {
  current(): PolicySet
  status?(): { revision: string; lastError?: string }
  close?(): Promise<void>
}

export interface PolicyParts {
  config: GatewayConfig
  shared: SharedParts
  lifecycle: Lifecycle
  logger: Logger
  metrics: Metrics
  opaBin: string | undefined
  /** Follows what is at a source. */
  watch: typeof watchPolicies
  /** Told of each decision of the shadow policies that is another one. */
  onDifference?: ((difference: object) => void) | undefined
}

/** Watched; closed by whoever uses it last. Throws `StartupError` when they cannot be loaded. */
export const openPolicies = async (parts: PolicyParts): Promise<PolicyProvider> => {
  const { config, shared, lifecycle, logger, metrics, opaBin, watch } = parts
  const { path, remote, verify, units, isolation } = config.policies
  const needed = [...new Set(config.routes.map(({ entrypoint }) => entrypoint))].sort()
  const isolated = config.routes.some((route) => route.isolation === 'worker')
  const verification = verify && (await readVerification(verify))
  const input = largestInput(config)
  const counter = (name: string, help: string) => metrics.counter(name, help, ['entrypoint'])
  const runaways = counter('surrogate_gateway_policy_deadlines_total', 'Isolated evaluations that were ended')
  const slow = counter('surrogate_gateway_policy_slow_total', 'Evaluations that took longer than 5 ms')

  const opening = usedBy(lifecycle, shared)(
    'policies',
    { path, needed, remote, verify, units, input, isolation: isolated && isolation },
    () =>
      watch({
        path,
        logger,
        opaBin,
        needed,
        metrics,
        remote,
        verification,
        units,
        input,
        ...(isolated && { isolation }),
        onRunaway: (entrypoint) => {
          runaways.inc({ entrypoint })
          logger.warn({ entrypoint, milliseconds: isolation.deadline }, 'an isolated policy missed its deadline')
        },
        onSlow: (entrypoint) => slow.inc({ entrypoint }),
      }),
    closeOpened,
  )
  try {
    return await opening
  } catch (cause) {
    throw new StartupError(`The policies at ${path} cannot be used: ${(cause as Error).message}`, {
      hint: 'surrogate policy check shows what is wrong with rules, surrogate policy build makes their bundle.',
      cause,
    })
  }
}

/** Throws `StartupError` that names the routes whose entrypoint is not there. */
export const requireEntrypoints = ({ routes }: GatewayConfig, { entrypoints }: PolicySet): void => {
  const missing = routes.filter(({ entrypoint }) => !entrypoints.includes(entrypoint))
  if (missing.length === 0) return
  const lines = missing.map(({ id, entrypoint }) => `  route ${id}: ${entrypoint}`)
  throw new StartupError(`The policies lack these entrypoints:\n${lines.join('\n')}`, {
    hint: `Annotate the rule with "# METADATA" and "# entrypoint: true". There are: ${entrypoints.join(', ')}`,
  })
}

/** For `/readyz`: always ok, since the last good rules go on; the detail says what keeps newer ones out. */
export const policyHealth = ({ revision, lastError }: { revision: string; lastError?: string }): HealthResult => ({
  ok: true,
  detail: lastError ?? `revision ${revision}`,
})

/** Candidates beside the live policies, where the configuration names some. */
export const openShadow = async (parts: PolicyParts): Promise<Shadow | undefined> => {
  const { config, shared, lifecycle, logger, metrics, opaBin, watch, onDifference } = parts
  const { shadow, shadowSample: sample, remote, verify } = config.policies
  if (shadow === undefined) return undefined
  const verification = verify && (await readVerification(verify))
  const input = largestInput(config)
  return usedBy(lifecycle, shared)(
    'shadow policies',
    { shadow, sample, remote, verify, input },
    // The file that keeps a bundle for the next start belongs to the live policies.
    () =>
      createShadow({
        path: shadow,
        sample,
        opaBin,
        remote: { ...remote, cache: undefined },
        verification,
        input,
        logger,
        metrics,
        watch,
        onDifference,
      }),
    closeOpened,
  )
}

const closeOpened = (opening: Promise<{ close(): Promise<void> }>) =>
  opening.then(
    ({ close }) => close(),
    () => {},
  )

/**
 * The keys are read at the start; a changed one needs a new file name or a restart. Throws `StartupError` for one that
 * cannot be used.
 */
export const readVerification = async ({
  keys,
  scope,
}: NonNullable<GatewayConfig['policies']['verify']>): Promise<Verification> => ({
  scope,
  keys: new Map(
    await Promise.all(
      keys.map(async ({ id, algorithm, file }) => {
        try {
          const key = createPublicKey(await readFile(file))
          if (key.asymmetricKeyType !== keyTypes[algorithm]) throw new TypeError(`it is no key for ${algorithm}`)
          return [id, { algorithm, key }] as const
        } catch (cause) {
          const why = (cause as Error).message
          throw new StartupError(`The key ${id} for policy bundles at ${file} cannot be used: ${why}`, {
            hint: 'It must be a public key in PEM: openssl pkey -in key.pem -pubout.',
            cause,
          })
        }
      }),
    ),
  ),
})

const keyTypes = { ES256: 'ec', RS256: 'rsa' } as const
