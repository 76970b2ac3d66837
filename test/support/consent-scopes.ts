import { userScopes } from '../../issuer/directory/consents/consent-scopes.ts'

/** What the third-party applications of most tests may ask people for: everything there is by now. */
export const allowEverything = `WITH partners AS (SELECT id FROM applications WHERE is_third_party),
   of_resources AS (
     INSERT INTO application_consent_scopes (application_id, scope_id, in_organization)
     SELECT p.id, s.id, inside FROM partners p, scopes s JOIN resources r ON r.id = s.resource_id,
       (VALUES (false), (true)) AS o (inside) WHERE NOT r.is_management ON CONFLICT DO NOTHING),
   of_organizations AS (
     INSERT INTO application_consent_organization_scopes (application_id, organization_scope_id)
     SELECT p.id, o.id FROM partners p, organization_scopes o ON CONFLICT DO NOTHING)
   INSERT INTO application_consent_user_scopes (application_id, name)
   SELECT p.id, known.name FROM partners p, unnest('{${userScopes.join()}}'::text[]) AS known (name)
   ON CONFLICT DO NOTHING`
