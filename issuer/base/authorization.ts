import { problem } from './errors/problems.ts'
import type { Caller, CallingPerson, ManagementAccess, Operation } from './route.ts'

/**
 * The permissions of the Management API resource and what each allows. A route names the one that fits it (`scope`);
 * `all` fits every route, and `read` every GET whose answer holds no credential.
 */
export const managementScopes = {
  all: 'Default scope for Management API, allows all permissions.',
  read: 'Reading, except secrets, personal access tokens, signing keys and digests',
  users: 'Users, their data, passwords and suspension',
  rbac: 'API resources, their permissions, roles and who holds them',
  organizations: 'Organizations, their members, roles and permissions',
  applications: 'Applications and their secrets',
  hooks: 'Webhooks, their signing keys and deliveries',
  'sign-in':
    'How people sign in: its settings, pages and pictures, connectors, the account pages and lengths of sessions',
  impersonation: 'Subject tokens and impersonation sessions',
  keys: 'Signing keys of the issuer',
  claims: 'Scripts that add claims to access tokens, and which claims ID tokens have',
  revocations: 'The revocation feed and introspection of any token',
} as const satisfies Record<string, string>

export type ManagementScope = keyof typeof managementScopes

/**
 * The names of the role that every start gives all of the Management API (`bootstrap.ts`), in new databases and in
 * those of older versions: whoever could take such a name would be given that too.
 */
export const managementRoleNames = { current: 'Logto Management API access', older: 'Management API access' } as const

type Protected = Pick<Operation, 'method'> & Omit<ManagementAccess, 'access'>

/** The scopes of which one is enough for the route, the narrowest first. */
export const fittingScopes = ({ method, scope, secret }: Protected): ManagementScope[] => [
  ...new Set<ManagementScope>([...[scope].flat(), ...(method === 'GET' && !secret ? (['read'] as const) : []), 'all']),
]

/** Whether the caller holds a scope that fits the route. */
export const isAllowed = (route: Protected, caller: Caller): boolean =>
  fittingScopes(route).some((scope) => caller.scopes.has(scope))

/** Throws 403 `auth.forbidden` unless the caller holds a scope that fits the route. */
export const authorize = (route: Protected, caller: Caller): void => {
  if (isAllowed(route, caller)) return
  const fitting = fittingScopes(route)
  throw problem('auth.forbidden', {
    detail: `This needs one of the scopes ${fitting.join(', ')}.`,
    data: { scopes: fitting },
    // RFC 6750 §3.1
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${fitting.join(' ')}"` },
  })
}

/** How old the proof of a person may be for what needs a fresh one, in seconds. */
export const freshProofSeconds = 300

/** Throws 401 `console.step_up_required` when a person proved too long ago who they are (RFC 9470). */
export const requireFreshProof = ({ person }: { person?: Pick<CallingPerson, 'isFresh'> | undefined }): void => {
  if (!person || person.isFresh) return
  throw problem('console.step_up_required', {
    detail: `This needs a sign-in within the last ${freshProofSeconds / 60} minutes.`,
    data: { maxAge: freshProofSeconds },
    headers: {
      'WWW-Authenticate': `Bearer error="insufficient_user_authentication", max_age=${freshProofSeconds}`,
    },
  })
}

/**
 * No escalation of privilege: a caller without `all` may not create, change, delete, assign or issue secrets for an
 * application, role or permission that carries a management scope the caller lacks. `concerned` reads the management
 * scopes concerned. A person needs a fresh proof where there are any.
 */
export const refuseEscalation = async (caller: Caller, concerned: () => Promise<string[]>): Promise<void> => {
  const mayAll = caller.scopes.has('all')
  // A round trip that most do not need.
  if (mayAll && caller.person?.isFresh !== false) return
  const carried = await concerned()
  const lacking = mayAll ? [] : carried.filter((scope) => !caller.scopes.has(scope))
  if (lacking.length === 0) return carried.length > 0 ? requireFreshProof(caller) : undefined
  const names = [...new Set(lacking)].sort()
  throw problem('auth.forbidden', {
    detail: `This concerns the management scope ${names.join(', ')}, which the access token lacks.`,
    data: { scopes: names },
  })
}
