import type { Database } from '../platform/database.ts'
import { newId, randomAlphanumerics } from '../platform/ids.ts'
import { sha256 } from '../platform/secret.ts'
import { StartupError } from '../platform/startup-error.ts'
import {
  ensureResource,
  ensureRole,
  findBootstrapApplication,
  insertBootstrapApplication,
  lockBootstrap,
  setBootstrapSecret,
} from './bootstrap-store.ts'
import { managementRole, managementScopes } from './management/authorization.ts'

export interface BootstrapOptions {
  database: Pick<Database, 'transaction'>
  /** Of the Management API resource: `{base_url}/api`, then its aliases. */
  indicators: readonly string[]
  /** The application of the operator's choice; its secret is what is configured, also after a change. */
  clientId?: string | undefined
  clientSecret?: string | undefined
}

/** Credentials that were made just now, to be shown once. */
export interface BootstrapCredentials {
  clientId: string
  clientSecret: string
}

/**
 * What must be there before the first call: the Management API as a resource, a machine-to-machine role that holds `all`, and one
 * application with that role. Safe to run at every start of every instance; returns credentials only when it made them up. Throws
 * `StartupError` when one of these names belongs to something else.
 */
export const bootstrap = (options: BootstrapOptions): Promise<BootstrapCredentials | undefined> =>
  options.database.transaction(async (query) => {
    await lockBootstrap(query)
    const scopeIds: string[] = []
    for (const indicator of options.indicators) {
      const resource = await ensureResource(query, indicator, managementScopes)
      if (resource === undefined) throw foreignResource(indicator)
      scopeIds.push(resource.allScopeId)
    }
    const roleId = await ensureRole(query, { ...managementRole, scopeIds })
    if (roleId === undefined) {
      throw new StartupError(`There is a user role named "${managementRole.name}", and that name is reserved.`, {
        hint: 'Rename that role.',
      })
    }

    const existing = await findBootstrapApplication(query, options.clientId)
    const clientId = existing ?? options.clientId ?? newId()
    if (!existing && !(await insertBootstrapApplication(query, clientId, roleId))) {
      throw new StartupError(`The application ${clientId} exists and is not a machine-to-machine application.`, {
        hint: 'Set BOOTSTRAP_CLIENT_ID to another value.',
      })
    }
    if (options.clientSecret !== undefined) {
      await setBootstrapSecret(query, clientId, sha256(options.clientSecret))
      return undefined
    }
    if (existing) return undefined
    // 43 × 5.95 bits.
    const clientSecret = randomAlphanumerics(43)
    await setBootstrapSecret(query, clientId, sha256(clientSecret))
    return { clientId, clientSecret }
  })

/** Its permissions may stand on anybody's roles already, and would be those of the Management API from now on. */
const foreignResource = (indicator: string) =>
  new StartupError(`${indicator} is registered as an ordinary API resource, so it cannot be the Management API.`, {
    hint: 'Delete that resource, or set BASE_URL or MANAGEMENT_API_INDICATORS to something else.',
  })
