import type { Database } from '../../platform/database/database.ts'
import { newId, randomAlphanumerics } from '../../platform/ids.ts'
import { sha256 } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { managementRoleNames, managementScopes } from '../base/authorization.ts'
import { consoleClientId, consoleRoles } from '../base/console-roles.ts'
import {
  ensureConsoleApplication,
  ensureConsoleRole,
  ensureResource,
  ensureRole,
  findBootstrapApplication,
  findManagementResources,
  insertBootstrapApplication,
  lockBootstrap,
  setBootstrapSecret,
} from './bootstrap-store.ts'

export interface BootstrapOptions {
  database: Pick<Database, 'transaction'>
  /** Of the Management API resource: `{base_url}/api`, then its aliases. */
  indicators: readonly string[]
  /** The application of the operator's choice; its secret is what is configured, also after a change. */
  clientId?: string | undefined
  clientSecret?: string | undefined
  /** Where browsers reach the console. Undefined: this instance has none. */
  consoleUrl?: string | undefined
}

/** Credentials that were made just now, to be shown once. */
export interface BootstrapCredentials {
  clientId: string
  clientSecret: string
}

/**
 * In a new database the Management API has the ids and names that existing clients know; in one of an older version it
 * keeps its own.
 */
const seedResourceId = 'management-api'
const seedScopeIds = { all: 'management-api-all' }
const currentNames = { resource: 'Logto Management API', role: managementRoleNames.current }
const olderNames = { resource: 'Management API', role: managementRoleNames.older }

/**
 * What must be there before the first call: the Management API as a resource, a machine-to-machine role that holds
 * `all`, one application with that role, and what the console stands on. Safe to run at every start of every instance;
 * returns credentials only when it made them up. Throws `StartupError` when one of these names belongs to something
 * else.
 */
export const bootstrap = (options: BootstrapOptions): Promise<BootstrapCredentials | undefined> =>
  options.database.transaction(async (query) => {
    await lockBootstrap(query)
    const known = await findManagementResources(query)
    const isNew = known.length === 0
    const names = isNew || known.includes(seedResourceId) ? currentNames : olderNames
    const resourceIds: string[] = []
    const scopeIds: string[] = []
    for (const [index, indicator] of options.indicators.entries()) {
      const ids = isNew && index === 0 ? { id: seedResourceId, scopeIds: seedScopeIds } : { id: newId(), scopeIds: {} }
      const resource = { ...ids, name: names.resource, indicator, scopes: managementScopes }
      const ensured = await ensureResource(query, resource)
      if (ensured === undefined) throw foreignResource(indicator)
      resourceIds.push(ensured.id)
      scopeIds.push(ensured.allScopeId)
    }
    const description = 'Holds every permission of the Management API'
    const roleId = await ensureRole(query, { name: names.role, description, scopeIds })
    if (roleId === undefined) {
      throw new StartupError(`There is a user role named "${names.role}", and that name is reserved.`, {
        hint: 'Rename that role.',
      })
    }

    for (const role of Object.values(consoleRoles)) await ensureConsoleRole(query, role, resourceIds)
    await ensureConsoleApplication(query, consoleClientId, options.consoleUrl)

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
