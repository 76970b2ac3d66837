/**
 * A third-party application may ask people only for what the operator lets it ask for; SQL conditions for that.
 * `openid` and `offline_access` need no permission.
 */

/** Of a scope of OpenID Connect, or a permission of organizations, by its name. */
export const mayAskFor = (applicationId: string, name: string): string =>
  `(${name} IN ('openid', 'offline_access')
    OR EXISTS (SELECT FROM application_consent_user_scopes l WHERE l.application_id = ${applicationId} AND l.name = ${name})
    OR EXISTS (SELECT FROM application_consent_organization_scopes l JOIN organization_scopes o
      ON o.id = l.organization_scope_id WHERE l.application_id = ${applicationId} AND o.name = ${name}))`

/** Of a scope of a resource. `more`: a condition on the row `l`. */
export const mayAskForScope = (applicationId: string, scopeId: string, more = 'true'): string =>
  `EXISTS (SELECT FROM application_consent_scopes l
     WHERE l.application_id = ${applicationId} AND l.scope_id = ${scopeId} AND ${more})`

/**
 * An SQL expression: what a person allows an application now, as JSON, or NULL. Of scopes of resources those that the
 * application may use within an organization when one is asked for, else those for itself.
 */
export const consentInForce = ({
  userId,
  clientId,
  organizationId,
}: {
  userId: string
  clientId: string
  organizationId: string
}): string =>
  `(SELECT json_build_object(
      'scopes', ARRAY(SELECT name FROM unnest(g.scopes) WITH ORDINALITY AS one (name, n)
        WHERE ${mayAskFor('g.client_id', 'one.name')} ORDER BY n),
      'resources', (SELECT coalesce(json_object_agg(given.indicator, ARRAY(
          SELECT s.name FROM resources p JOIN scopes s ON s.resource_id = p.id
          WHERE p.indicator = given.indicator AND given.names ? s.name
            AND ${mayAskForScope('g.client_id', 's.id', `l.in_organization = (${organizationId} IS NOT NULL)`)})), '{}')
        FROM jsonb_each(g.resources) AS given (indicator, names)),
      'organizations', g.organizations)
    FROM consents g WHERE g.user_id = ${userId} AND g.client_id = ${clientId} AND g.revoked_at IS NULL
      AND g.expires_at > now())`
