import type { EventBus } from '../../events/bus.ts'
import { createPublisher } from '../../events/publisher.ts'
import type { IssuerConfig } from '../../issuer/config.ts'
import { startIssuer } from '../../issuer/main.ts'
import type { Database } from '../../platform/database.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { watchPolicies } from '../../policies/decide.ts'
import { impersonationEntrypoint } from '../../policies/impersonation.ts'
import type { Service } from '../serve.ts'

export interface PolicySettings {
  path: string | undefined
  opaBin: string | undefined
}

/** With the publisher that carries its events to the bus. */
export const openIssuer = async (
  service: Service,
  options: { config: IssuerConfig; database: Database; bus: EventBus; policy: PolicySettings },
) => {
  const { config, database, bus, policy } = options
  const { lifecycle, logger, metrics, health } = service
  const publisher = createPublisher({ database, bus, logger, metrics })
  // Never a reason to send no requests here: changes go on, and their events wait.
  health.addCheck('events', async () => ({ ...(await bus.health()), ok: true }))
  lifecycle.onStop('publisher', () => publisher.close())
  const policies = policy.path === undefined ? undefined : await openPolicies(service, policy.path, policy.opaBin)
  const issuer = await startIssuer({
    ...service,
    config,
    database,
    events: publisher,
    onRevocations: bus.hintRevocations,
    ...(policies && { policies }),
  })
  lifecycle.onStop('issuer', () => issuer.close())
  return issuer
}

const openPolicies = async ({ lifecycle, logger, metrics }: Service, path: string, opaBin: string | undefined) => {
  const needed = [impersonationEntrypoint]
  const policies = await watchPolicies({ path, opaBin, logger, metrics, name: 'impersonation', needed }).catch(
    (cause: Error) => {
      throw new StartupError(`The impersonation policy at ${path} cannot be used: ${cause.message}`, {
        hint: 'Check POLICY_PATH; surrogate policy check shows what is wrong with rules.',
        cause,
      })
    },
  )
  lifecycle.onStop('impersonation policy', () => policies.close())
  if (!policies.current().entrypoints.includes(impersonationEntrypoint)) {
    throw new StartupError(`The policies at ${path} lack the entrypoint ${impersonationEntrypoint}.`, {
      hint: 'Begin with policies/impersonation.rego; docs/policies.md says how.',
    })
  }
  // Changed files are followed anyway; this is for who wants to say when, and for file systems whose times cannot be trusted.
  const reload = () => void policies.reload()
  process.on('SIGHUP', reload)
  lifecycle.onStop('SIGHUP', () => void process.off('SIGHUP', reload))
  return policies
}
