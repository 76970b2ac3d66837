import { z } from 'zod'
import {
  type EntityKind,
  examples,
  impersonation,
  impersonationRequest,
  jsonObject,
  organization,
  organizationRole,
  organizationScope,
  role,
  scope,
  user,
} from './records.ts'

/**
 * An event type: what kind of thing it is about (its order is the order of that entity's changes) and what it holds.
 */
export interface EventType<
  Type extends string = string,
  Kind extends EntityKind = EntityKind,
  Data extends z.ZodType = z.ZodType,
> {
  type: Type
  /** `named`: delivered only to hooks that name the type; no wildcard covers it. */
  category: 'interaction' | 'data' | 'exception' | 'impersonation'
  entity: Kind
  /** What its `data` holds: the answer of the Management API, null when there is none. */
  data: Data
  /** "Occurs when …" */
  occurs: string
  /** What a test-send delivers. */
  example: Example<z.input<Data>>
  named?: true
  /** Nothing records it yet. Hooks may be registered for it. */
  planned?: true
}

interface Example<Data> {
  /** The request that causes it: method and route, below `/api`. */
  cause: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`
  /** Of its answer. Default 200. */
  status?: number
  data: Data
  /** Members beside `data`. */
  extras?: Record<string, unknown>
}

const mutation = <const Type extends string, const Kind extends EntityKind, Data extends z.ZodType>(
  type: Type,
  entity: Kind,
  data: Data,
  occurs: string,
  example: Example<z.input<Data>>,
): EventType<Type, Kind, Data> => ({ type, category: 'data', entity, data, occurs, example })

const deletion = <const Type extends string, const Kind extends EntityKind>(
  type: Type,
  entity: Kind,
  occurs: string,
  cause: Example<null>['cause'],
) => mutation(type, entity, z.null(), occurs, { cause, status: 204, data: null })

const planned = <const Type extends string>(
  category: EventType['category'],
  type: Type,
  occurs: string,
  example: Example<Record<string, unknown> | null>,
) => ({ ...mutation(type, 'user', jsonObject.nullable(), occurs, example), category, planned: true as const })

const ofImpersonation = { category: 'impersonation', named: true } as const
const impersonationEvent = <const Type extends string>(
  type: Type,
  occurs: string,
  example: Example<z.input<typeof impersonation>>,
) => ({ ...mutation(type, 'impersonation', impersonation, occurs, example), ...ofImpersonation })

/** Of a request to act as somebody, from asking on. */
const requestEvent = <const Type extends string>(
  type: Type,
  occurs: string,
  example: Example<z.input<typeof impersonationRequest>>,
) => ({
  ...mutation(type, 'impersonation-request', impersonationRequest, occurs, example),
  ...ofImpersonation,
})

const experience = { cause: 'POST /sign-in/:id', status: 303, data: examples.user } as const

/** What events of signing in say besides. `sessionId` is the interaction. */
const circumstances = {
  interactionEvent: 'SignIn',
  sessionId: 'e5r9t3y7u1i5o9p3a7s1d',
  userIp: '203.0.113.7',
  application: { id: 'v3b7n1m5q9w3e7r1t5y9u', type: 'SPA', name: 'Shop', description: null },
}
const ofInteraction = { ...circumstances, userId: examples.user.id, user: examples.user }

/** What a person went through on the pages of signing in, or with pages of one's own. */
const interaction = <const Type extends string>(type: Type, interactionEvent: string, occurs: string) => ({
  ...mutation(type, 'user', user, occurs, { ...experience, extras: { ...ofInteraction, interactionEvent } }),
  category: 'interaction' as const,
})

/** Of a person, for those who watch accounts: what happened stands beside `data`. */
const watched = <const Type extends string>(
  type: Type,
  occurs: string,
  example: Omit<Example<null>, 'data'> & { extras: Record<string, unknown> },
) => ({
  ...mutation(type, 'user', z.null(), occurs, {
    ...example,
    data: null,
    extras: { userId: examples.user.id, ...example.extras },
  }),
  category: 'exception' as const,
  named: true as const,
})

/** Every event type there is. What is recorded fits its row, or does not compile (`NewEvent`). */
export const catalogue = [
  interaction('PostRegister', 'Register', 'a user has created an account through the sign-up flow'),
  interaction('PostSignIn', 'SignIn', 'a user has signed in'),
  interaction('PostResetPassword', 'ForgotPassword', 'a password was reset through the forgot-password flow'),
  planned(
    'interaction',
    'PostSignInAdaptiveMfaTriggered',
    'a sign-in was risky enough to be asked for another factor',
    experience,
  ),

  mutation('User.Created', 'user', user, 'a user account is created', { cause: 'POST /users', data: examples.user }),
  mutation('User.Deleted', 'user', user, 'a user account is deleted; `data` is the deleted user', {
    cause: 'DELETE /users/:userId',
    status: 204,
    data: examples.user,
  }),
  mutation(
    'User.Data.Updated',
    'user',
    // The answer of the route: the user, or for …/custom-data and …/profile that object.
    jsonObject,
    'profile data of a user change: email, avatar, custom data, password and so on',
    { cause: 'PATCH /users/:userId', data: examples.user },
  ),
  mutation('User.SuspensionStatus.Updated', 'user', user, 'a user is suspended or reactivated', {
    cause: 'PATCH /users/:userId/is-suspended',
    data: { ...examples.user, isSuspended: true },
  }),

  mutation('Role.Created', 'role', role, 'a role is created', { cause: 'POST /roles', data: examples.role }),
  deletion('Role.Deleted', 'role', 'a role is deleted', 'DELETE /roles/:id'),
  mutation('Role.Data.Updated', 'role', role, 'the name, description or default status of a role changes', {
    cause: 'PATCH /roles/:id',
    data: examples.role,
  }),
  mutation(
    'Role.Scopes.Updated',
    'role',
    z.array(scope).nullable(),
    'permissions are added to or removed from a role; after an addition `data` lists them',
    {
      cause: 'POST /roles/:id/scopes',
      status: 201,
      data: [examples.scope],
      extras: { roleId: examples.role.id },
    },
  ),

  mutation('Scope.Created', 'scope', scope, 'an API permission is created', {
    cause: 'POST /resources/:resourceId/scopes',
    status: 201,
    data: examples.scope,
  }),
  deletion('Scope.Deleted', 'scope', 'an API permission is deleted', 'DELETE /resources/:resourceId/scopes/:scopeId'),
  mutation('Scope.Data.Updated', 'scope', scope, 'the name or description of an API permission changes', {
    cause: 'PATCH /resources/:resourceId/scopes/:scopeId',
    data: examples.scope,
  }),

  mutation('Organization.Created', 'organization', organization, 'an organization is created', {
    cause: 'POST /organizations',
    status: 201,
    data: examples.organization,
  }),
  deletion('Organization.Deleted', 'organization', 'an organization is deleted', 'DELETE /organizations/:id'),
  mutation(
    'Organization.Data.Updated',
    'organization',
    organization,
    'name, description, custom data and so on change',
    {
      cause: 'PATCH /organizations/:id',
      data: examples.organization,
    },
  ),
  mutation(
    'Organization.Membership.Updated',
    'organization',
    // The answer of the route: after an addition the ids that were sent.
    z
      .union([
        z.strictObject({ userIds: z.array(z.string()) }),
        z.strictObject({ applicationIds: z.array(z.string()) }),
      ])
      .nullable(),
    'members are added to or removed from an organization; `addedUserIds`, `removedUserIds`, `addedApplicationIds`, `removedApplicationIds` name them (5 000 at most)',
    {
      cause: 'POST /organizations/:id/users',
      status: 201,
      data: { userIds: [examples.user.id] },
      extras: { addedUserIds: [examples.user.id] },
    },
  ),

  mutation('OrganizationRole.Created', 'organization-role', organizationRole, 'an organization role is created', {
    cause: 'POST /organization-roles',
    status: 201,
    data: examples['organization-role'],
  }),
  deletion(
    'OrganizationRole.Deleted',
    'organization-role',
    'an organization role is deleted',
    'DELETE /organization-roles/:id',
  ),
  mutation('OrganizationRole.Data.Updated', 'organization-role', organizationRole, 'an organization role changes', {
    cause: 'PATCH /organization-roles/:id',
    data: examples['organization-role'],
  }),
  mutation(
    'OrganizationRole.Scopes.Updated',
    'organization-role',
    // Those of API resources have `resourceId`.
    z.array(z.union([scope, organizationScope])).nullable(),
    'permissions are added to or removed from an organization role; when it was created with some, `data` lists them',
    {
      cause: 'PUT /organization-roles/:id/scopes',
      status: 204,
      data: null,
      extras: { organizationRoleId: examples['organization-role'].id },
    },
  ),

  mutation(
    'OrganizationScope.Created',
    'organization-scope',
    organizationScope,
    'an organization permission is created',
    { cause: 'POST /organization-scopes', status: 201, data: examples['organization-scope'] },
  ),
  deletion(
    'OrganizationScope.Deleted',
    'organization-scope',
    'an organization permission is deleted',
    'DELETE /organization-scopes/:id',
  ),
  mutation(
    'OrganizationScope.Data.Updated',
    'organization-scope',
    organizationScope,
    'an organization permission changes',
    { cause: 'PATCH /organization-scopes/:id', data: examples['organization-scope'] },
  ),

  {
    ...mutation(
      'Identifier.Lockout',
      'user',
      z.null(),
      'an account is locked after too many failed sign-in attempts; once per lock',
      {
        cause: 'POST /sign-in/:id',
        status: 400,
        data: null,
        extras: { type: 'username', value: 'ada', ...circumstances },
      },
    ),
    category: 'exception',
  },
  {
    ...mutation(
      'Message.RateLimited',
      'user',
      z.null(),
      'somebody is not sent another message because there were too many; once per limit and window',
      {
        cause: 'POST /experience/verification/verification-code',
        status: 429,
        data: null,
        extras: { action: 'VerificationCodeSend', recipient: 'ada@example.com', userId: examples.user.id },
      },
    ),
    category: 'exception',
    named: true,
  },
  watched('Session.Ended', 'a session was ended before its time; `reason` says why, `endedBy` by whom', {
    cause: 'POST /oidc/session/end',
    extras: { sessionId: 's2f6g0h4j8k2l6z0x4c8v', reason: 'logout', endedBy: examples.user.id },
  }),
  watched('RefreshToken.Reused', 'a refresh token was used again, and its authorization ended; once for each', {
    cause: 'POST /oidc/token',
    status: 400,
    extras: { applicationId: circumstances.application.id, authorizationId: 'ps_a1d5f9g3h7j1k5l9z3x7c' },
  }),
  watched('Consent.Granted', 'a person allowed a third-party application something', {
    cause: 'POST /sign-in/:id',
    status: 303,
    extras: {
      ...{ ...circumstances, applicationId: circumstances.application.id },
      ...{ scopes: ['openid', 'profile'], resources: {}, organizations: [] },
    },
  }),
  watched('Consent.Revoked', 'what a person allowed a third-party application was taken back', {
    cause: 'DELETE /users/:userId/grants/:grantId',
    status: 204,
    extras: { applicationId: circumstances.application.id, revokedBy: 'c9v3b7n1m5q9w3e7r1t5y' },
  }),
  // Existing clients register hooks for this one, and for `PostSignInAdaptiveMfaTriggered`.
  planned(
    'exception',
    'Grant.LimitExceeded',
    'a sign-in ended an older one because the application allows only so many',
    {
      cause: 'GET /oidc/auth',
      status: 303,
      data: null,
      extras: {
        userId: examples.user.id,
        applicationId: examples.impersonation.clientId,
        maxAllowedGrants: 1,
        preRevocationActiveGrantCount: 2,
        revokedGrantIds: ['g4h8j2k6l0q4w8e2r6t0y'],
      },
    },
  ),

  requestEvent('Impersonation.Requested', 'somebody asked to act as a person, who is to agree first', {
    cause: 'POST /subject-tokens',
    status: 202,
    data: examples['impersonation-request'],
  }),
  requestEvent('Impersonation.Approved', 'a person agreed that somebody acts as them; `data` has the limits', {
    cause: 'POST /my-account/impersonation-requests/:id/approve',
    status: 204,
    data: {
      ...examples['impersonation-request'],
      ...{ status: 'approved', decidedAt: examples['impersonation-request'].createdAt + 60_000, readOnly: true },
    },
  }),
  requestEvent('Impersonation.Refused', 'a person did not agree that somebody acts as them, or took it back', {
    cause: 'POST /my-account/impersonation-requests/:id/refuse',
    status: 204,
    data: {
      ...examples['impersonation-request'],
      ...{ status: 'refused', decidedAt: examples['impersonation-request'].createdAt + 60_000 },
    },
  }),
  impersonationEvent('Impersonation.Started', 'a subject token was exchanged for an access token', {
    cause: 'POST /oidc/token',
    data: examples.impersonation,
  }),
  impersonationEvent('Impersonation.Ended', 'an impersonation was ended before its token expired', {
    cause: 'POST /impersonations/:id/end',
    status: 204,
    data: {
      ...examples.impersonation,
      endedAt: examples.impersonation.startedAt + 60_000,
      endedBy: 'c9v3b7n1m5q9w3e7r1t5y',
    },
  }),
] as const

type Row = (typeof catalogue)[number]

/** What a row lets be recorded. */
type EventOf<One> =
  One extends EventType<infer Type, infer Kind, infer Data>
    ? {
        type: Type
        entity: { kind: Kind; id: string }
        organizationId?: string
        data: z.input<Data>
        /** Members beside `data`: `roleId`, `addedUserIds`, … They cannot replace the others. */
        extras?: Record<string, unknown>
      }
    : never

/** An event, without the request that caused it: of the union of all rows, so that a wrong payload does not compile. */
export type EventContent = EventOf<Row>

/** The `data` of a type. */
export type EventData<Type extends Row['type']> = Extract<EventContent, { type: Type }>['data']

export const eventTypes: ReadonlyMap<string, EventType> = new Map<string, EventType>(
  catalogue.map((row) => [row.type, row]),
)
