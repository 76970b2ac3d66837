/** What has a version, and where it stands: a row makes ETag, `If-Match` and the rest of it work on its routes. */
interface VersionedKind {
  /** As in `entity_versions`; of those with events, the kind of their events. */
  kind: string
  /** Of the Management API. What stands below it belongs to the entity too. */
  path: string
  /** Where its row is, in one of them. */
  table: string | readonly string[]
  /** The column of the id. */
  key?: string
  /** Of which there is one: its id. */
  only?: string
  /** It has defaults, so it is there also while no row says so. */
  isAlwaysThere?: true
}

/** Those without events get their versions from triggers (migration 0046). */
const kinds: readonly VersionedKind[] = [
  { kind: 'user', path: '/users/:userId', table: 'users' },
  { kind: 'role', path: '/roles/:id', table: 'roles' },
  { kind: 'scope', path: '/resources/:resourceId/scopes/:scopeId', table: 'scopes' },
  { kind: 'organization', path: '/organizations/:id', table: 'organizations' },
  { kind: 'organization-role', path: '/organization-roles/:id', table: 'organization_roles' },
  { kind: 'organization-scope', path: '/organization-scopes/:id', table: 'organization_scopes' },
  { kind: 'resource', path: '/resources/:id', table: 'resources' },
  { kind: 'application', path: '/applications/:id', table: 'applications' },
  {
    kind: 'application-sign-in-experience',
    path: '/applications/:id/sign-in-experience',
    table: 'application_sign_in_experiences',
    key: 'application_id',
    isAlwaysThere: true,
  },
  { kind: 'hook', path: '/hooks/:id', table: 'hooks' },
  { kind: 'connector', path: '/connectors/:id', table: ['connectors', 'identity_providers'] },
  { kind: 'connector', path: '/sso-connectors/:id', table: 'identity_providers' },
  { kind: 'claims-script', path: '/configs/jwt-customizer/:tokenType', table: 'claims_scripts', key: 'token_type' },
  {
    kind: 'setting',
    path: '/sign-in-exp',
    table: 'settings',
    key: 'name',
    only: 'sign-in-experience',
    isAlwaysThere: true,
  },
  { kind: 'setting', path: '/account-center', table: 'settings', key: 'name', only: 'account', isAlwaysThere: true },
  { kind: 'setting', path: '/configs/id-token', table: 'settings', key: 'name', only: 'id-token', isAlwaysThere: true },
  {
    kind: 'setting',
    path: '/configs/oidc/session',
    table: 'settings',
    key: 'name',
    only: 'session',
    isAlwaysThere: true,
  },
]

export interface VersionedEntity {
  kind: string
  id: string
  tables: readonly string[]
  key: string
  isAlwaysThere: boolean
}

interface VersionedPath {
  /** Where the entity itself stands. */
  path: string
  isItself: boolean
  entity(params: Readonly<Record<string, string>>): VersionedEntity
}

/** What the route is about, if that has a version. Of several paths the longest is meant. */
export const versionedAt = (path: string): VersionedPath | undefined => {
  const [found] = kinds
    .filter((one) => path === one.path || path.startsWith(`${one.path}/`))
    .sort((one, other) => other.path.length - one.path.length)
  if (found === undefined) return undefined
  const { kind, table, key = 'id', only, isAlwaysThere = false } = found
  const [, parameter = ''] = /.*\/:(\w+)/.exec(found.path) ?? []
  return {
    path: found.path,
    isItself: path === found.path,
    entity: (params) => ({ kind, tables: [table].flat(), key, id: only ?? params[parameter]!, isAlwaysThere }),
  }
}

interface Addressed {
  method: string
  path: string
}

/** Whether an answer says a version: one entity that is read. */
export const hasVersion = ({ method, path }: Addressed): boolean =>
  method === 'GET' && versionedAt(path)?.isItself === true

/** Whether `If-Match` means something to a route: it changes an entity, or what belongs to one. */
export const takesIfMatch = ({ method, path }: Addressed): boolean =>
  method !== 'GET' && method !== 'POST' && versionedAt(path) !== undefined
