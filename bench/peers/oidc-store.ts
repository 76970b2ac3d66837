import { createHash } from 'node:crypto'
import type { Adapter, Payload } from 'oidc-provider'
import pg from 'pg'
import type { Connection } from '../harness/database-store.ts'

/**
 * The Postgres side of the oidc-provider peer: the library's adapter over one JSONB table, and the tables and
 * statements of a service with users, roles and single-use subject tokens. Every statement is named, so prepared once a
 * connection.
 */
export const peerSchema = `
  create table oidc_payloads (
    model text not null, id text not null, payload jsonb not null, grant_id text, user_code text, uid text,
    consumed_at timestamptz, expires_at timestamptz, primary key (model, id));
  create index on oidc_payloads (grant_id) where grant_id is not null;
  create unique index on oidc_payloads (user_code) where user_code is not null;
  create unique index on oidc_payloads (uid) where uid is not null;
  create index on oidc_payloads (expires_at) where expires_at is not null;

  create table users (
    id text primary key, is_suspended boolean not null default false, email text unique, email_verified boolean,
    name text, password_digest text, created_at timestamptz not null default now(),
    updated_at timestamptz not null default now());
  create table resources (indicator text primary key, access_token_ttl integer not null);
  create table scopes (id integer primary key, resource text not null references resources, name text not null,
    unique (resource, name));
  create table role_scopes (role text, scope_id integer references scopes, primary key (role, scope_id));
  create table user_roles (user_id text references users, role text, primary key (user_id, role));
  create table client_roles (client_id text, role text, primary key (client_id, role));

  create table subject_tokens (
    hash bytea primary key, user_id text not null references users on delete cascade, context jsonb not null default '{}',
    expires_at timestamptz not null, consumed_at timestamptz);
  create table impersonation_sessions (
    id uuid primary key, subject text not null, actor text, client_id text not null, resource text not null,
    scope text not null, context jsonb not null, started_at timestamptz not null default now());
  create table audit_log (
    id bigint generated always as identity primary key, at timestamptz not null default now(), key text not null,
    payload jsonb not null);
`

export const sha256 = (token: string): Buffer => createHash('sha256').update(token).digest()

const runner = (pool: pg.Pool) => {
  // One rejected idle connection must not end the process.
  pool.on('error', () => {})
  return <Row extends object>(name: string, text: string, values: unknown[]) => pool.query<Row>({ name, text, values })
}

type Run = ReturnType<typeof runner>

const adapterOver =
  (run: Run) =>
  (model: string): Adapter => {
    const one = async (name: string, condition: string, value: string) => {
      const { rows } = await run<{ payload: Payload; consumed: number | null }>(
        name,
        `select payload, extract(epoch from consumed_at)::int as consumed from oidc_payloads
         where model = $1 and ${condition} = $2 and (expires_at is null or expires_at > now())`,
        [model, value],
      )
      const [row] = rows
      return row && (row.consumed === null ? row.payload : { ...row.payload, consumed: row.consumed })
    }
    return {
      upsert: async (id, payload, expiresIn) => {
        await run(
          'upsert',
          `insert into oidc_payloads (model, id, payload, grant_id, user_code, uid, expires_at)
           values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
           on conflict (model, id) do update set payload = excluded.payload, grant_id = excluded.grant_id,
             user_code = excluded.user_code, uid = excluded.uid, expires_at = excluded.expires_at`,
          [model, id, payload, payload.grantId, payload.userCode, payload.uid, expiresIn],
        )
      },
      find: (id) => one('find', 'id', id),
      findByUid: (uid) => one('find_by_uid', 'uid', uid),
      findByUserCode: (userCode) => one('find_by_user_code', 'user_code', userCode),
      // The library asks for a mark; two parallel redemptions must not both get through.
      consume: async (id) => {
        const { rowCount } = await run(
          'consume',
          'update oidc_payloads set consumed_at = now() where model = $1 and id = $2 and consumed_at is null',
          [model, id],
        )
        if (rowCount === 0) throw new Error(`${model} was consumed already`)
      },
      destroy: async (id) => {
        await run('destroy', 'delete from oidc_payloads where model = $1 and id = $2', [model, id])
      },
      revokeByGrantId: async (grantId) => {
        await run('revoke', 'delete from oidc_payloads where model = $1 and grant_id = $2', [model, grantId])
      },
    }
  }

export type ResourceAccess = { ttl: number; defined: string[]; granted: string[] }
export type Account = {
  id: string
  email: string | null
  emailVerified: boolean | null
  name: string | null
  /** In seconds. */
  createdAt: number
  updatedAt: number
}
export type Subject = { userId: string; suspended: boolean; expired: boolean; consumed: boolean }

/** Scopes of resource `$1` that the roles of `$2` in `table` carry. */
const accessColumns = (table: 'client_roles' | 'user_roles', holder: string) => `
  r.access_token_ttl as ttl,
  array(select name from scopes where resource = r.indicator) as defined,
  array(select distinct s.name from ${table} h join role_scopes using (role) join scopes s on s.id = scope_id
        where h.${table === 'client_roles' ? 'client_id' : 'user_id'} = ${holder} and s.resource = r.indicator) as granted`

export type Redemption = {
  token: Buffer
  sessionId: string
  actorId: string | null
  clientId: string
  resource: string
  scope: string
}

export const createPeerStore = (connection: Connection) => {
  const pool = new pg.Pool({ ...connection, max: 10 })
  const run = runner(pool)
  return {
    adapter: adapterOver(run),
    clientAccess: async (resource: string, clientId: string) => {
      const text = `select ${accessColumns('client_roles', '$2')} from resources r where r.indicator = $1`
      const { rows } = await run<ResourceAccess>('client_access', text, [resource, clientId])
      return rows[0]
    },
    /** For a user; without one, before somebody has signed in, everything that is defined counts as granted. */
    userAccess: async (resource: string, userId: string | undefined) => {
      const text = `select ${accessColumns('user_roles', '$2')} from resources r where r.indicator = $1`
      const { rows } = await run<ResourceAccess>('user_access', text, [resource, userId])
      const [row] = rows
      return row && userId === undefined ? { ...row, granted: row.defined } : row
    },
    findAccount: async (id: string) => {
      const { rows } = await run<Account>(
        'find_account',
        `select id, email, email_verified as "emailVerified", name, floor(extract(epoch from created_at))::float8 as "createdAt",
           floor(extract(epoch from updated_at))::float8 as "updatedAt"
         from users where id = $1 and not is_suspended`,
        [id],
      )
      return rows[0]
    },
    findDigest: async (email: string) => {
      const { rows } = await run<{ id: string; digest: string }>(
        'find_digest',
        'select id, password_digest as digest from users where email = $1 and not is_suspended',
        [email],
      )
      return rows[0]
    },
    /**
     * Everything the exchange must know of a subject token, in one round trip; `access` is absent for an unknown
     * resource.
     */
    findSubject: async (token: Buffer, resource: string) => {
      const { rows } = await run<Subject & (ResourceAccess | { ttl: null })>(
        'find_subject',
        `select u.id as "userId", u.is_suspended as suspended, t.expires_at <= now() as expired,
                t.consumed_at is not null as consumed, access.*
         from subject_tokens t join users u on u.id = t.user_id
         left join lateral (select ${accessColumns('user_roles', 'u.id')} from resources r where r.indicator = $2) access on true
         where t.hash = $1`,
        [token, resource],
      )
      return rows[0]
    },
    isLiveUser: async (id: string): Promise<boolean> => {
      const { rowCount } = await run('live_user', 'select 1 from users where id = $1 and not is_suspended', [id])
      return rowCount === 1
    },
    /** Consumes the token and writes session and audit, or none of it: false when another request was first. */
    redeem: async ({ token, sessionId, actorId, clientId, resource, scope }: Redemption): Promise<boolean> => {
      const { rowCount } = await run(
        'redeem',
        `with consumed as (
           update subject_tokens t set consumed_at = now() from users u
           where t.hash = $1 and t.consumed_at is null and t.expires_at > now() and u.id = t.user_id and not u.is_suspended
           returning t.user_id, t.context
         ), session as (
           insert into impersonation_sessions (id, subject, actor, client_id, resource, scope, context)
           select $2, user_id, $3, $4, $5, $6, context from consumed returning id, subject
         )
         insert into audit_log (key, payload)
         select 'ExchangeTokenBy.TokenExchange', jsonb_build_object('session', id, 'userId', subject, 'actorId', $3::text,
           'applicationId', $4::text, 'resource', $5::text, 'scope', $6::text) from session`,
        [token, sessionId, actorId, clientId, resource, scope],
      )
      return rowCount === 1
    },
    close: () => pool.end(),
  }
}

export type PeerStore = ReturnType<typeof createPeerStore>
