import { z } from 'zod'
import type { EntityKind } from './outbox.ts'

/**
 * Every event type there is, as a row: what kind of thing it is about (its order is the order of that entity's
 * changes), what its `data` holds, and when it occurs. Payloads are checked against `data` in tests, not when they are
 * recorded.
 */
export interface EventType {
  type: string
  /** `named`: delivered only to hooks that name the type; no wildcard covers it. */
  category: 'interaction' | 'data' | 'exception' | 'impersonation'
  entity: EntityKind
  data: z.ZodType
  /** "Occurs when …" */
  occurs: string
  named?: true
  /** Nothing records it yet. Hooks may be registered for it. */
  planned?: true
}

const nothing = z.null()
const object = z.record(z.string(), z.unknown())
/** Milliseconds since the epoch. */
const time = z.number().int()
const nullableText = z.string().nullable()
const tenantId = z.literal('default')

const user = z.looseObject({
  id: z.string(),
  username: nullableText,
  primaryEmail: nullableText,
  primaryPhone: nullableText,
  name: nullableText,
  avatar: nullableText,
  customData: object,
  identities: object,
  profile: object,
  applicationId: nullableText,
  isSuspended: z.boolean(),
  lastSignInAt: time.nullable(),
  createdAt: time,
  updatedAt: time,
})
const role = z.looseObject({
  tenantId,
  id: z.string(),
  name: z.string(),
  description: z.string(),
  type: z.enum(['User', 'MachineToMachine']),
  isDefault: z.boolean(),
})
const scope = z.looseObject({
  tenantId,
  id: z.string(),
  resourceId: z.string(),
  name: z.string(),
  description: nullableText,
  createdAt: time,
})
const organization = z.looseObject({
  tenantId,
  id: z.string(),
  name: z.string(),
  description: nullableText,
  customData: object,
  isMfaRequired: z.boolean(),
  color: object,
  branding: object,
  customCss: nullableText,
  createdAt: time,
})
const organizationRole = z.looseObject({
  tenantId,
  id: z.string(),
  name: z.string(),
  description: nullableText,
  type: z.enum(['User', 'MachineToMachine']),
})
const organizationScope = z.looseObject({ tenantId, id: z.string(), name: z.string(), description: nullableText })
/** The row of `/api/impersonations`. */
const impersonation = z.looseObject({
  id: z.string(),
  subjectId: z.string(),
  actorId: nullableText,
  clientId: z.string(),
  scopes: z.array(z.string()),
  startedAt: time,
  expiresAt: time,
  endedAt: time.nullable(),
})

const interaction = (type: string, occurs: string): EventType => ({
  type,
  category: 'interaction',
  entity: 'user',
  data: object.nullable(),
  occurs,
  planned: true,
})
const mutation = (type: string, entity: EntityKind, data: z.ZodType, occurs: string): EventType => ({
  type,
  category: 'data',
  entity,
  data,
  occurs,
})

export const catalogue: readonly EventType[] = [
  interaction('PostRegister', 'a user has created an account through the sign-up flow'),
  interaction('PostSignIn', 'a user has signed in'),
  interaction('PostResetPassword', 'a password was reset through the forgot-password flow'),
  interaction('PostSignInAdaptiveMfaTriggered', 'a sign-in was risky enough to be asked for another factor'),

  mutation('User.Created', 'user', user, 'a user account is created'),
  mutation('User.Deleted', 'user', user, 'a user account is deleted; `data` is the deleted user'),
  mutation(
    'User.Data.Updated',
    'user',
    // The answer of the route: the user, or for …/custom-data and …/profile that object.
    object,
    'profile data of a user change: email, avatar, custom data, password and so on',
  ),
  mutation('User.SuspensionStatus.Updated', 'user', user, 'a user is suspended or reactivated'),

  mutation('Role.Created', 'role', role, 'a role is created'),
  mutation('Role.Deleted', 'role', nothing, 'a role is deleted'),
  mutation('Role.Data.Updated', 'role', role, 'the name, description or default status of a role changes'),
  mutation(
    'Role.Scopes.Updated',
    'role',
    z.array(z.looseObject({ id: z.string(), name: z.string(), resourceId: z.string() })).nullable(),
    'permissions are added to or removed from a role; after an addition `data` lists them',
  ),

  mutation('Scope.Created', 'scope', scope, 'an API permission is created'),
  mutation('Scope.Deleted', 'scope', nothing, 'an API permission is deleted'),
  mutation('Scope.Data.Updated', 'scope', scope, 'the name or description of an API permission changes'),

  mutation('Organization.Created', 'organization', organization, 'an organization is created'),
  mutation('Organization.Deleted', 'organization', nothing, 'an organization is deleted'),
  mutation(
    'Organization.Data.Updated',
    'organization',
    organization,
    'name, description, custom data and so on change',
  ),
  mutation(
    'Organization.Membership.Updated',
    'organization',
    // The answer of the route: after an addition the ids that were sent.
    z
      .union([z.looseObject({ userIds: z.array(z.string()) }), z.looseObject({ applicationIds: z.array(z.string()) })])
      .nullable(),
    'members are added to or removed from an organization; `addedUserIds`, `removedUserIds`, `addedApplicationIds`, `removedApplicationIds` name them (5 000 at most)',
  ),

  mutation('OrganizationRole.Created', 'organization-role', organizationRole, 'an organization role is created'),
  mutation('OrganizationRole.Deleted', 'organization-role', nothing, 'an organization role is deleted'),
  mutation('OrganizationRole.Data.Updated', 'organization-role', organizationRole, 'an organization role changes'),
  mutation(
    'OrganizationRole.Scopes.Updated',
    'organization-role',
    // Those of API resources have `resourceId`.
    z.array(z.union([scope, organizationScope])).nullable(),
    'permissions are added to or removed from an organization role; when it was created with some, `data` lists them',
  ),

  mutation(
    'OrganizationScope.Created',
    'organization-scope',
    organizationScope,
    'an organization permission is created',
  ),
  mutation('OrganizationScope.Deleted', 'organization-scope', nothing, 'an organization permission is deleted'),
  mutation(
    'OrganizationScope.Data.Updated',
    'organization-scope',
    organizationScope,
    'an organization permission changes',
  ),

  {
    type: 'Identifier.Lockout',
    category: 'exception',
    entity: 'user',
    data: object.nullable(),
    occurs: 'an account is locked after too many failed sign-in attempts; once per lock',
    planned: true,
  },
  // Existing clients register hooks for these, and for `PostSignInAdaptiveMfaTriggered`.
  {
    type: 'Message.RateLimited',
    category: 'exception',
    entity: 'user',
    data: object.nullable(),
    occurs: 'somebody is not sent another code because there were too many',
    planned: true,
  },
  {
    type: 'Grant.LimitExceeded',
    category: 'exception',
    entity: 'user',
    data: object.nullable(),
    occurs: 'a sign-in ended an older one because the application allows only so many',
    planned: true,
  },

  {
    type: 'Impersonation.Started',
    category: 'impersonation',
    entity: 'impersonation',
    data: impersonation,
    occurs: 'a subject token was exchanged for an access token',
    named: true,
  },
  {
    type: 'Impersonation.Ended',
    category: 'impersonation',
    entity: 'impersonation',
    data: impersonation,
    occurs: 'an impersonation was ended before its token expired',
    named: true,
  },
]

/** For the documents. */
export const occasionOf = ({ occurs, planned }: EventType): string =>
  `Occurs when ${occurs}.${planned ? ' Not sent yet.' : ''}`

export const eventTypes: ReadonlyMap<string, EventType> = new Map(catalogue.map((row) => [row.type, row]))

/** Other spellings under which a hook may be registered. */
const aliases: Record<string, string> = { 'Role.Scopes.Update': 'Role.Scopes.Updated' }

/** The type that a name stands for; undefined when there is none. */
export const eventTypeOf = (name: string): string | undefined => {
  const type = aliases[name] ?? name
  return eventTypes.has(type) ? type : undefined
}

/**
 * The wildcards that cover a type, whether or not the type allows it: `User.Data.*`, `User.*` and `*` for
 * `User.Data.Updated`.
 */
const wildcardsOf = (type: string): string[] => {
  const words = type.split('.')
  return ['*', ...words.slice(1).map((_, index) => `${words.slice(0, index + 1).join('.')}.*`)]
}

/**
 * What a hook may be registered for: a type, or a wildcard (`*`, `User.*`) that covers at least one type that does not
 * have to be named. Undefined for anything else.
 */
export const eventPatternOf = (name: string): string | undefined =>
  eventTypeOf(name) ?? (typesMatching([name]).length > 0 ? name : undefined)

/** The patterns under which a hook gets events of this type, also of one that a newer version has recorded. */
export const patternsOf = (type: string): string[] => [type, ...(eventTypes.get(type)?.named ? [] : wildcardsOf(type))]

/** The types that these patterns cover, in the order of the catalogue. */
export const typesMatching = (patterns: readonly string[]): string[] =>
  catalogue.map(({ type }) => type).filter((type) => patternsOf(type).some((pattern) => patterns.includes(pattern)))
