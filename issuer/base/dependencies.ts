import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Mutate } from './mutate.ts'

/** What the routes of users, resources, roles, applications and logs stand on. */
export interface ManagementDependencies {
  database: Pick<Database, 'knex'>
  mutate: Mutate
  /** The indicators of the Management API resource: `{base_url}/api` and its aliases. */
  indicators: readonly string[]
  now: Clock
}
