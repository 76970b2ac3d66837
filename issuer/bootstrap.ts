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
 * application with that role. Safe to run at every start of every instance; returns credentials only when it made them up.
 */
export const bootstrap = (options: BootstrapOptions): Promise<BootstrapCredentials | undefined> =>
  options.database.transaction(async (query) => {
    await lockBootstrap(query)
    const scopeIds: string[] = []
    for (const indicator of options.indicators) {
      scopeIds.push((await ensureResource(query, indicator, managementScopes)).allScopeId)
    }
    const roleId = await ensureRole(query, { ...managementRole, scopeIds })

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
