import type { Knex } from 'knex'

/**
 * The names of the management scopes that roles, applications and permissions carry; what `refuseEscalation` compares
 * with the caller's. Those of an alias that is not configured at present count too: it may be again.
 */
const managementScopes = (knex: Knex, indicators: readonly string[]): Knex.QueryBuilder =>
  knex('scopes')
    .join('resources', 'resources.id', 'scopes.resource_id')
    .where((either) => either.whereIn('resources.indicator', indicators).orWhere('resources.is_management', true))
    .distinct('scopes.name')

const names = async (query: Knex.QueryBuilder): Promise<string[]> =>
  (await query).map(({ name }: { name: string }) => name)

export const managementScopesAmong = (knex: Knex, indicators: readonly string[], scopeIds: readonly string[]) =>
  names(managementScopes(knex, indicators).whereIn('scopes.id', scopeIds))

export const managementScopesOfRoles = (knex: Knex, indicators: readonly string[], roleIds: readonly string[]) =>
  names(
    managementScopes(knex, indicators)
      .join('role_scopes', 'role_scopes.scope_id', 'scopes.id')
      .whereIn('role_scopes.role_id', roleIds),
  )

const managementScopesOfPeople = (knex: Knex, indicators: readonly string[]) =>
  managementScopes(knex, indicators)
    .join('role_scopes', 'role_scopes.scope_id', 'scopes.id')
    .join('user_roles', 'user_roles.role_id', 'role_scopes.role_id')

/** Those that a person holds by roles of the console. */
export const managementScopesOfUser = (knex: Knex, indicators: readonly string[], userId: string) =>
  names(managementScopesOfPeople(knex, indicators).where('user_roles.user_id', userId))

/** The same of whoever has the address. Few hold any, so they are looked through. */
export const managementScopesOfAddress = (knex: Knex, indicators: readonly string[], email: string) =>
  names(
    managementScopesOfPeople(knex, indicators)
      .join('users', 'users.id', 'user_roles.user_id')
      .whereRaw('lower(users.primary_email) = lower(?)', [email]),
  )

export const managementScopesOfApplications = (
  knex: Knex,
  indicators: readonly string[],
  applicationIds: readonly string[],
) =>
  names(
    managementScopes(knex, indicators)
      .join('role_scopes', 'role_scopes.scope_id', 'scopes.id')
      .join('application_roles', 'application_roles.role_id', 'role_scopes.role_id')
      .whereIn('application_roles.application_id', applicationIds),
  )
