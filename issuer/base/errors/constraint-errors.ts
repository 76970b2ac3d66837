import { isDatabaseUnavailable } from '../../../platform/database/database-unavailable.ts'
import { type ProblemCode, problem } from './problems.ts'

/**
 * What a violated constraint means to the caller. Operations check first for the better message; these rows decide
 * between writers that checked at the same time. Names are those of `migrations/`.
 */
const constraints: Record<string, ProblemCode> = {
  users_username_key: 'user.username_already_in_use',
  users_primary_email_key: 'user.email_already_in_use',
  users_primary_phone_key: 'user.phone_already_in_use',
  resources_indicator: 'resource.resource_identifier_in_use',
  scopes_name: 'scope.name_exists',
  roles_name: 'role.name_in_use',
  role_scopes_once: 'role.scope_exists',
  user_roles_once: 'role.user_exists',
  application_roles_once: 'role.application_exists',
  application_secrets_name: 'application.secret_name_exists',
  user_identities_once: 'user.identity_already_in_use',
  user_sso_identities_once: 'user.identity_already_in_use',
  identity_providers_target: 'connector.multiple_target_with_same_platform',
  identity_providers_name: 'single_sign_on.duplicate_connector_name',
  identity_provider_domains_once: 'single_sign_on.duplicated_domains',
  console_last_owner: 'console.last_owner',
  personal_access_tokens_name: 'user.personal_access_token_name_exists',
}

/** Where no constraint says more: the SQLSTATE (PostgreSQL, appendix A). */
const states: Record<string, ProblemCode> = {
  '22001': 'entity.value_too_long',
  // The pattern of a `like` search ends in its escape character.
  '22025': 'guard.invalid_input',
  '23502': 'entity.db_constraint_violated',
  '23503': 'entity.relation_foreign_key_not_found',
  '23505': 'entity.unique_integrity_violation',
  '23514': 'entity.db_constraint_violated',
}

const postgresError = (error: unknown): { code: string; constraint: string | undefined } | undefined => {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined
  return { code: String(error.code), constraint: 'constraint' in error ? String(error.constraint) : undefined }
}

/**
 * The problem behind a database error, or the error itself when it is neither the caller's doing nor a database that
 * cannot serve now.
 */
export const constraintError = (error: unknown): unknown => {
  if (isDatabaseUnavailable(error))
    return problem('server.unavailable', { headers: { 'Retry-After': '5' }, cause: error })
  const violation = postgresError(error)
  if (violation === undefined) return error
  const code = constraints[violation.constraint ?? ''] ?? states[violation.code]
  return code === undefined ? error : problem(code, { cause: error })
}

/** 40P01: two transactions waited for each other. 40001: they cannot be put in an order. */
export const isDeadlock = (error: unknown): boolean => ['40P01', '40001'].includes(postgresError(error)?.code ?? '')
