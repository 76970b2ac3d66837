import { impersonation, impersonationRequest } from '../../../events/records.ts'
import { application } from '../../directory/applications/application.ts'
import { applicationSecret } from '../../directory/applications/secret.ts'
import { attempt, delivery, hookLog } from '../../directory/hooks/delivery.ts'
import { hook } from '../../directory/hooks/hook.ts'
import { hookHealth, lane } from '../../directory/hooks/lanes-router.ts'
import { log } from '../../directory/logs/log.ts'
import { organization } from '../../directory/organizations/organization.ts'
import { organizationRole } from '../../directory/organizations/roles/organization-role.ts'
import { organizationScope } from '../../directory/organizations/scopes/organization-scope.ts'
import { personalAccessToken } from '../../directory/personal-access-tokens/personal-access-token.ts'
import { resource } from '../../directory/resources/resource.ts'
import { scope } from '../../directory/resources/scope.ts'
import { role } from '../../directory/roles/role.ts'
import { userGrant, userSession } from '../../directory/sessions/records.ts'
import { mfaVerification } from '../../directory/users/factors/mfa-verification.ts'
import { user } from '../../directory/users/user.ts'
import { keyRecord } from '../../tokens/keys/key-record.ts'
import type { NamedSchemas } from './json-schema.ts'

/**
 * The records that have a name of their own in the OpenAPI document. A record that is missing here is described where
 * it occurs.
 */
export const records: NamedSchemas = {
  Application: application,
  ApplicationSecret: applicationSecret,
  Delivery: delivery,
  DeliveryAttempt: attempt,
  Hook: hook,
  HookHealth: hookHealth,
  HookLane: lane,
  HookLog: hookLog,
  ImpersonationRequest: impersonationRequest,
  ImpersonationSession: impersonation,
  Log: log,
  MfaVerification: mfaVerification,
  Organization: organization,
  OrganizationRole: organizationRole,
  OrganizationScope: organizationScope,
  PersonalAccessToken: personalAccessToken,
  Resource: resource,
  Role: role,
  Scope: scope,
  SigningKey: keyRecord,
  User: user,
  UserGrant: userGrant,
  UserSession: userSession,
}
