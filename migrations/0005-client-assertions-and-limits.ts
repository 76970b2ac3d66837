import type { Migration } from '../platform/database/database.ts'

/** Proofs of clients that were used, buckets of rate limits, and the web origins of applications. */
export const clientAssertionsAndLimits: Migration = {
  name: '0005-client-assertions-and-limits',
  up: (knex) =>
    knex.raw(`
-- Assertions (RFC 7523) that authenticated a client, until they expire: none is accepted twice. Digest of client and jti.
CREATE TABLE client_assertions (
  digest     bytea       PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX client_assertions_by_expiry ON client_assertions (expires_at);

-- Token buckets. Instances lease blocks of them, so a row changes far less often than its bucket is used. Keys are digests: callers
-- choose what goes into them. After a crash the buckets are full, which is all that is lost.
CREATE UNLOGGED TABLE rate_limit_buckets (
  key        bytea            PRIMARY KEY,
  tokens     double precision NOT NULL,
  -- What the last lease was given.
  leased     integer          NOT NULL,
  updated_at timestamptz      NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX rate_limit_buckets_by_update ON rate_limit_buckets (updated_at);

-- (knex wants its placeholder sign escaped.) The web origins (RFC 6454 §6.2) an application is registered with: its CORS origins, and those of its redirect URIs.
CREATE FUNCTION application_origins(oidc_client_metadata jsonb, custom_client_metadata jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $function$
  SELECT coalesce(array_agg(DISTINCT origin) FILTER (WHERE origin IS NOT NULL), '{}') FROM (
    SELECT jsonb_array_elements_text(jsonb_path_query_array(custom_client_metadata, 'lax $.corsAllowedOrigins[*]')) AS origin
    UNION ALL
    SELECT regexp_replace(
      regexp_replace(substring(lower(uri) from '^https{0,1}://[^/#\\?]+'), '^(https{0,1}://)[^@]*@', '\\1'),
      '^((http://.*):80|(https://.*):443)$', '\\2\\3')
    FROM jsonb_array_elements_text(jsonb_path_query_array(oidc_client_metadata, 'lax $.redirectUris[*]')) AS uri
  ) origins
$function$;
CREATE INDEX applications_by_origin ON applications USING gin (application_origins(oidc_client_metadata, custom_client_metadata));
`),
}
