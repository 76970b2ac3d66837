import { type EventType, eventTypes } from './catalogue.ts'
import { apiVersion, type EntityKind } from './outbox.ts'

/** A made-up event of every type, with the members that a real one has: what a test-send delivers. */

const createdAt = 1_767_323_045_678
const tenantId = 'default'
const userId = 'u8j2k4m6n8p0'
const ids = {
  user: userId,
  role: 'r7c1x5v9b3n7m1a5s9d3f',
  scope: 's4g8h2j6k0l4q8w2e6r0t',
  organization: 'o3y7u1i5o9p3',
  'organization-role': 'p6a0s4d8f2g6h0j4k8l2z',
  'organization-scope': 'q1x5c9v3b7n1m5q9w3e7r',
  impersonation: 'i9t3y7u1i5o9p3a7s1d5f',
  hook: 'h2g6h0j4k8l2z6x0c4v8b',
} satisfies Record<EntityKind, string>

const user = {
  id: userId,
  username: 'ada',
  primaryEmail: 'ada@example.com',
  primaryPhone: null,
  name: 'Ada Lovelace',
  avatar: null,
  customData: { plan: 'gold' },
  identities: {},
  profile: {},
  applicationId: null,
  isSuspended: false,
  hasPassword: true,
  lastSignInAt: createdAt,
  createdAt,
  updatedAt: createdAt,
}
const role = {
  tenantId,
  id: ids.role,
  name: 'Reader',
  description: 'Reads orders',
  type: 'User',
  isDefault: false,
}
const scope = {
  tenantId,
  id: ids.scope,
  resourceId: 'z5x9c3v7b1n5m9q3w7e1r',
  name: 'read:orders',
  description: 'Read orders',
  createdAt,
}
const organization = {
  tenantId,
  id: ids.organization,
  name: 'Acme',
  description: 'An organization',
  customData: {},
  isMfaRequired: false,
  color: {},
  branding: {},
  customCss: null,
  createdAt,
}
const organizationRole = {
  tenantId,
  id: ids['organization-role'],
  name: 'Member',
  description: null,
  type: 'User',
}
const organizationScope = { tenantId, id: ids['organization-scope'], name: 'invite:members', description: null }
const session = {
  id: ids.impersonation,
  subjectId: userId,
  actorId: 'b1n5m9q3w7e1',
  actorVia: 'sign_in',
  clientId: 'v3b7n1m5q9w3e7r1t5y9u',
  creatorId: 'c9v3b7n1m5q9w3e7r1t5y',
  resource: 'https://api.example.com',
  scopes: ['read:orders'],
  context: { ticketId: 'T-1' },
  reason: 'Support',
  ticket: 'T-1',
  startedAt: createdAt,
  expiresAt: createdAt + 3_600_000,
  endedAt: null,
  endedBy: null,
}

interface Example {
  method: string
  /** Below `/api`. */
  route: string
  data: unknown
  extras?: Record<string, unknown>
  status?: number
}

const examples: Readonly<Record<string, Example>> = {
  PostRegister: { method: 'POST', route: '/experience/submit', data: user },
  PostSignIn: { method: 'POST', route: '/experience/submit', data: user },
  PostResetPassword: { method: 'POST', route: '/experience/submit', data: user },
  PostSignInAdaptiveMfaTriggered: { method: 'POST', route: '/experience/submit', data: user },
  'User.Created': { method: 'POST', route: '/users', data: user },
  'User.Deleted': { method: 'DELETE', route: '/users/:userId', data: user, status: 204 },
  'User.Data.Updated': { method: 'PATCH', route: '/users/:userId', data: user },
  'User.SuspensionStatus.Updated': {
    method: 'PATCH',
    route: '/users/:userId/is-suspended',
    data: { ...user, isSuspended: true },
  },
  'Role.Created': { method: 'POST', route: '/roles', data: role },
  'Role.Deleted': { method: 'DELETE', route: '/roles/:id', data: null, status: 204 },
  'Role.Data.Updated': { method: 'PATCH', route: '/roles/:id', data: role },
  'Role.Scopes.Updated': {
    method: 'POST',
    route: '/roles/:id/scopes',
    data: [scope],
    extras: { roleId: ids.role },
    status: 201,
  },
  'Scope.Created': { method: 'POST', route: '/resources/:resourceId/scopes', data: scope, status: 201 },
  'Scope.Deleted': { method: 'DELETE', route: '/resources/:resourceId/scopes/:scopeId', data: null, status: 204 },
  'Scope.Data.Updated': { method: 'PATCH', route: '/resources/:resourceId/scopes/:scopeId', data: scope },
  'Organization.Created': { method: 'POST', route: '/organizations', data: organization, status: 201 },
  'Organization.Deleted': { method: 'DELETE', route: '/organizations/:id', data: null, status: 204 },
  'Organization.Data.Updated': { method: 'PATCH', route: '/organizations/:id', data: organization },
  'Organization.Membership.Updated': {
    method: 'POST',
    route: '/organizations/:id/users',
    data: { userIds: [userId] },
    extras: { addedUserIds: [userId] },
    status: 201,
  },
  'OrganizationRole.Created': { method: 'POST', route: '/organization-roles', data: organizationRole, status: 201 },
  'OrganizationRole.Deleted': { method: 'DELETE', route: '/organization-roles/:id', data: null, status: 204 },
  'OrganizationRole.Data.Updated': { method: 'PATCH', route: '/organization-roles/:id', data: organizationRole },
  'OrganizationRole.Scopes.Updated': {
    method: 'PUT',
    route: '/organization-roles/:id/scopes',
    data: null,
    extras: { organizationRoleId: ids['organization-role'] },
    status: 204,
  },
  'OrganizationScope.Created': { method: 'POST', route: '/organization-scopes', data: organizationScope, status: 201 },
  'OrganizationScope.Deleted': { method: 'DELETE', route: '/organization-scopes/:id', data: null, status: 204 },
  'OrganizationScope.Data.Updated': { method: 'PATCH', route: '/organization-scopes/:id', data: organizationScope },
  'Identifier.Lockout': {
    method: 'POST',
    route: '/experience/identification',
    data: null,
    extras: { type: 'username', value: 'ada' },
    status: 422,
  },
  'Message.RateLimited': {
    method: 'POST',
    route: '/experience/verification/verification-code',
    data: null,
    extras: { action: 'VerificationCodeSend', recipient: 'ada@example.com' },
    status: 429,
  },
  'Grant.LimitExceeded': {
    method: 'GET',
    route: '/oidc/auth',
    data: null,
    extras: {
      userId,
      applicationId: session.clientId,
      maxAllowedGrants: 1,
      preRevocationActiveGrantCount: 2,
      revokedGrantIds: ['g4h8j2k6l0q4w8e2r6t0y'],
    },
    status: 303,
  },
  'Impersonation.Started': { method: 'POST', route: '/oidc/token', data: session },
  'Impersonation.Ended': {
    method: 'POST',
    route: '/impersonations/:id/end',
    data: { ...session, endedAt: createdAt + 60_000, endedBy: 'c9v3b7n1m5q9w3e7r1t5y' },
    status: 204,
  },
}

const paramsOf = (route: string, id: string): Record<string, string> =>
  Object.fromEntries(
    [...route.matchAll(/:(\w+)/g)].map(([, name]) => [name, name === 'resourceId' ? scope.resourceId : id]),
  )

/**
 * The bytes of a test event, as `recordEvent` would store them, with `test: true`. Throws TypeError for an unknown
 * type.
 */
export const testPayload = (
  type: string,
  { id, correlationId, createdAt: now }: { id: string; correlationId: string; createdAt: Date },
): Buffer => {
  const example = examples[type]
  const known: EventType | undefined = eventTypes.get(type)
  if (example === undefined || known === undefined) throw new TypeError(`Not an event type: ${type}`)
  const { method, route, data, extras, status = 200 } = example
  const params = paramsOf(route, ids[known.entity])
  const payload = {
    id,
    event: type,
    version: 1,
    test: true,
    apiVersion,
    correlationId,
    createdAt: now.toISOString(),
    ...(known.entity === 'organization' && { organizationId: ids.organization }),
    userAgent: 'Surrogate-Test',
    ip: '203.0.113.7',
    path: route.replace(/:(\w+)/g, (_, name: string) => params[name]!),
    method,
    status,
    params,
    matchedRoute: route,
    data,
    ...extras,
  }
  return Buffer.from(JSON.stringify(payload))
}
