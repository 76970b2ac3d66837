import type { EventBus } from '../../events/bus.ts'
import { createPublisher } from '../../events/publisher.ts'
import type { IssuerConfig } from '../../issuer/config.ts'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { inviteFirstOwner } from '../../issuer/console/invitations.ts'
import { startIssuer } from '../../issuer/main.ts'
import type { Database } from '../../platform/database/database.ts'
import { isDatabaseUnavailable } from '../../platform/database/database-unavailable.ts'
import { consoleFolder } from '../cli/console-folder.ts'
import type { Service } from '../cli/serve.ts'
import { openImpersonationPolicies, openSignInShadow } from './impersonation-policies.ts'

export interface PolicySettings {
  path: string | undefined
  /** Candidates for rules about signing in. */
  shadowPath: string | undefined
  /** What one evaluation may spend. Default 5 000 000. */
  units?: number
  opaBin: string | undefined
}

/**
 * Once everything runs: while nobody owns the console, whoever sees this terminal may. The issuer goes on where the
 * database is away at this moment.
 */
export const sayFirstOwner = async (
  { query }: Pick<Database, 'query'>,
  consoleUrl: string | undefined,
): Promise<void> => {
  const link = consoleUrl && (await inviteFirstOwner(query, consoleUrl).catch(unlessAway))
  if (link) process.stderr.write(`The console has no owner. This link makes one, once, within 30 minutes:\n  ${link}\n`)
}

const unlessAway = (error: unknown): undefined => {
  if (!isDatabaseUnavailable(error)) throw error
  process.stderr.write(
    'The database is away: "surrogate console invite --role owner" prints a link for the console later.\n',
  )
}

/** With the publisher that carries its events to the bus. */
export const openIssuer = async (
  service: Service,
  options: {
    config: IssuerConfig
    database: Database
    bus: EventBus
    policy: PolicySettings
    /** Gateways that the console asks besides those of the settings. */
    gateways?: () => readonly Gateway[]
  },
) => {
  const { config, database, bus, policy, gateways } = options
  const { lifecycle, logger, metrics, health } = service
  const publisher = createPublisher({ database, bus, logger, metrics })
  // Never a reason to send no requests here: changes go on, and their events wait.
  health.addCheck('events', async () => ({ ...(await bus.health()), ok: true }))
  lifecycle.onStop('publisher', () => publisher.close())
  const policies =
    policy.path === undefined
      ? undefined
      : await openImpersonationPolicies(service, policy.path, policy.opaBin, policy.units)
  const signInShadow =
    policy.shadowPath === undefined ? undefined : await openSignInShadow(service, policy.shadowPath, policy.opaBin)
  const issuer = await startIssuer({
    ...service,
    config,
    database,
    events: publisher,
    onRevocations: bus.hintRevocations,
    console: {
      folder: config.console?.isOn === false ? undefined : await consoleFolder(),
      ...(gateways && { gateways }),
    },
    ...(policies && { policies }),
    ...(signInShadow && { signInShadow }),
  })
  lifecycle.onStop('issuer', () => issuer.close())
  return issuer
}
