import type { Query } from '../../platform/database/database.ts'
import { lookUp } from '../../platform/database/shared-statement.ts'
import { onlyRow } from '../base/only-row.ts'
import type { ClaimsApplication, ClaimsOrganization, ClaimsUser } from './custom-claims.ts'

/** Whom a script is told about, by id. */
export interface ContextQuestion {
  userId?: string | undefined
  clientId: string
  organizationId?: string | undefined
}

export interface ContextFacts {
  /** Absent when none is asked for. */
  user?: ClaimsUser | null
  application: ClaimsApplication | null
  organization: ClaimsOrganization | null
}

const milliseconds = (column: string) => `floor(extract(epoch FROM ${column}) * 1000)`

const organizationObject = (from: string) =>
  `json_build_object('id', ${from}.id, 'name', ${from}.name, 'description', ${from}.description, 'customData', ${from}.custom_data)`

const list = (object: string, from: string, order: string) =>
  `COALESCE((SELECT json_agg(${object} ORDER BY ${order}) FROM ${from}), '[]')`

const scopeObject = `json_build_object('id', s.id, 'name', s.name, 'description', s.description, 'resourceId', s.resource_id,
  'resource', json_build_object('id', rs.id, 'name', rs.name, 'indicator', rs.indicator))`

const scopes = list(
  scopeObject,
  'role_scopes x JOIN scopes s ON s.id = x.scope_id JOIN resources rs ON rs.id = s.resource_id WHERE x.role_id = r.id',
  's.name, s.id',
)

const userColumns = `u.id, u.username, u.primary_email AS "primaryEmail", u.primary_phone AS "primaryPhone", u.name, u.avatar,
  u.custom_data AS "customData", u.identities, u.profile, u.application_id AS "applicationId",
  ${milliseconds('u.last_sign_in_at')} AS "lastSignInAt", ${milliseconds('u.created_at')} AS "createdAt",
  ${milliseconds('u.updated_at')} AS "updatedAt", u.is_suspended AS "isSuspended", u.password_digest IS NOT NULL AS "hasPassword",
  ${list(
    `json_build_object('ssoConnectorId', i.provider_id, 'issuer', i.issuer, 'identityId', i.subject, 'detail', i.detail)`,
    'user_sso_identities i WHERE i.user_id = u.id',
    'i.created_at, i.id',
  )} AS "ssoIdentities", '[]'::json AS "mfaVerificationFactors",
  ${list(
    `json_build_object('id', r.id, 'name', r.name, 'description', r.description, 'scopes', ${scopes})`,
    'user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id',
    'r.name',
  )} AS roles,
  ${list(
    organizationObject('o'),
    'organization_users ou JOIN organizations o ON o.id = ou.organization_id WHERE ou.user_id = u.id',
    'o.name, o.id',
  )} AS organizations,
  ${list(
    `json_build_object('organizationId', our.organization_id, 'roleId', orl.id, 'roleName', orl.name)`,
    // The primary key begins with the organization, so the way leads through those the user belongs to.
    `organization_users m JOIN organization_user_roles our ON our.organization_id = m.organization_id AND our.user_id = m.user_id
     JOIN organization_roles orl ON orl.id = our.organization_role_id WHERE m.user_id = u.id`,
    'our.organization_id, orl.name',
  )} AS "organizationRoles"`

const applicationColumns = `a.id, a.name, a.description, a.type, a.is_third_party AS "isThirdParty", a.custom_data AS "customData"`

const contextStatement = (withUser: boolean) =>
  lookUp(
    withUser ? 'claims-context-user' : 'claims-context',
    { ...(withUser && { user_id: 'text' }), client_id: 'text', organization_id: 'text' },
    `SELECT json_build_object(
       ${withUser ? `'user', (SELECT to_json(found) FROM (SELECT ${userColumns} FROM users u WHERE u.id = asked.user_id) found),` : ''}
       'application', (SELECT to_json(found) FROM (SELECT ${applicationColumns} FROM applications a WHERE a.id = asked.client_id) found),
       'organization', (SELECT ${organizationObject('o')} FROM organizations o WHERE o.id = asked.organization_id)) AS facts`,
  )

const ofUser = contextStatement(true)
const ofApplication = contextStatement(false)

/** One round trip. What is not asked for or does not exist is null. */
export const findContextFacts = async (
  query: Query,
  { userId, clientId, organizationId }: ContextQuestion,
): Promise<ContextFacts> => {
  const asked = { client_id: clientId, organization_id: organizationId }
  const rows =
    userId === undefined
      ? await query<{ facts: ContextFacts }>(ofApplication, [asked])
      : await query<{ facts: ContextFacts }>(ofUser, [{ ...asked, user_id: userId }])
  return onlyRow(rows).facts
}
