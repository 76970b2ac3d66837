import { application } from '../../applications/application.ts'
import { applicationSecret } from '../../applications/secret.ts'
import { attempt, delivery, hookLog } from '../../hooks/delivery.ts'
import { hook } from '../../hooks/hook.ts'
import { sessionRecord } from '../../impersonation/sessions.ts'
import { keyRecord } from '../../keys/key-record.ts'
import { log } from '../../logs/log.ts'
import { organizationRole } from '../../organization-roles/organization-role.ts'
import { organizationScope } from '../../organization-scopes/organization-scope.ts'
import { organization } from '../../organizations/organization.ts'
import { personalAccessToken } from '../../personal-access-tokens/personal-access-token.ts'
import { resource } from '../../resources/resource.ts'
import { scope } from '../../resources/scope.ts'
import { role } from '../../roles/role.ts'
import { user } from '../../users/user.ts'
import type { NamedSchemas } from './json-schema.ts'

/** The records that have a name of their own in the OpenAPI document. A record that is missing here is described where it occurs. */
export const records: NamedSchemas = {
  Application: application,
  ApplicationSecret: applicationSecret,
  Delivery: delivery,
  DeliveryAttempt: attempt,
  Hook: hook,
  HookLog: hookLog,
  ImpersonationSession: sessionRecord,
  Log: log,
  Organization: organization,
  OrganizationRole: organizationRole,
  OrganizationScope: organizationScope,
  PersonalAccessToken: personalAccessToken,
  Resource: resource,
  Role: role,
  Scope: scope,
  SigningKey: keyRecord,
  User: user,
}
