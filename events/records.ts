import { z } from 'zod'

/**
 * The records that events carry, each described once: the schema is that of the Management API's answers, of the
 * catalogue and of the documents; the example is what a test-send delivers.
 */

export const tenantId = z.literal('default')

/** An id in a path or a list: only looked up, so any short text will do. */
export const id = z.string().min(1).max(128)

/** Milliseconds since the epoch, until the year 9999. */
export const timestamp = z.number().int().max(253_402_300_799_999)

export const jsonObject = z.record(z.string(), z.unknown())

const text = z.string().max(2048)

/** The standard claims of OpenID Connect Core §5.1 that have no column of their own. */
export const userProfile = z
  .object({
    familyName: text,
    givenName: text,
    middleName: text,
    nickname: text,
    preferredUsername: text,
    profile: text,
    website: text,
    gender: text,
    birthdate: text,
    zoneinfo: text,
    locale: text,
    address: z
      .object({
        formatted: text,
        streetAddress: text,
        locality: text,
        region: text,
        postalCode: text,
        country: text,
      })
      .partial(),
  })
  .partial()

/** A user; nothing of the password but whether there is one. */
export const user = z.strictObject({
  id,
  username: z.string().nullable(),
  primaryEmail: z.string().nullable(),
  primaryPhone: z.string().nullable(),
  name: z.string().nullable(),
  avatar: z.string().nullable(),
  customData: jsonObject,
  identities: jsonObject,
  lastSignInAt: timestamp.nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
  profile: userProfile,
  applicationId: z.string().nullable(),
  cimdClientId: z.null(),
  isSuspended: z.boolean(),
  hasPassword: z.boolean(),
})

export const roleType = z.enum(['User', 'MachineToMachine'])

export const role = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  description: z.string(),
  type: roleType,
  isDefault: z.boolean(),
})

/** A permission of an API resource. */
export const scope = z.strictObject({
  tenantId,
  id,
  resourceId: id,
  name: z.string(),
  description: z.string().nullable(),
  createdAt: timestamp,
})

const hexColor = z.string().regex(/^#(?:[\da-f]{3}|[\da-f]{6})$/i, 'must be a color such as #5d34f2')
export const organizationColor = z
  .object({ primaryColor: hexColor, isDarkModeEnabled: z.boolean(), darkPrimaryColor: hexColor })
  .partial()

// Others show these: never a scheme that runs or reads something.
const image = z.url({ protocol: /^https?$/ }).max(2048)
export const organizationBranding = z
  .object({ logoUrl: image, darkLogoUrl: image, favicon: image, darkFavicon: image })
  .partial()

/**
 * With `isMfaRequired` only members who have a second factor get tokens. `color`, `branding` and `customCss` are kept
 * for those who read them.
 */
export const organization = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  description: z.string().nullable(),
  customData: jsonObject,
  isMfaRequired: z.boolean(),
  color: organizationColor,
  branding: organizationBranding,
  customCss: z.string().nullable(),
  createdAt: timestamp,
})

/** A role inside organizations: the same in every organization, held in each by other members. */
export const organizationRole = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  description: z.string().nullable(),
  type: roleType,
})

/** A permission inside organizations. */
export const organizationScope = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  description: z.string().nullable(),
})

/**
 * How the acting party was proven: by a token from signing in, or (weaker) by one that itself came from a subject
 * token or a personal access token.
 */
export const actorVias = ['sign_in', 'subject_token', 'personal_access_token'] as const

/** A session of impersonation: who acted as whom. */
export const impersonation = z.object({
  id: z.string(),
  subjectId: z.string(),
  actorId: z.string().nullable(),
  actorVia: z.enum(actorVias).nullable(),
  /** The `sid` of the actor's token: what the actor has signed in to. */
  actorSid: z.string().nullable(),
  clientId: z.string(),
  creatorId: z.string(),
  resource: z.string().nullable(),
  scopes: z.array(z.string()).readonly(),
  context: jsonObject,
  reason: z.string().nullable(),
  ticket: z.string().nullable(),
  /** `read`: the token only reads. */
  access: z.literal('read').nullable(),
  /** The request that the subject approved. */
  approvalId: z.string().nullable(),
  startedAt: timestamp,
  expiresAt: timestamp,
  endedAt: timestamp.nullable(),
  /** Who ended it: the subject of the access token that did, or a person. Null too where time did. */
  endedBy: z.string().nullable(),
})

export const impersonationRequestStatuses = ['pending', 'approved', 'refused', 'expired', 'used'] as const

/** Somebody asks to act as a person, who is to agree first. */
export const impersonationRequest = z.object({
  id: z.string(),
  status: z.enum(impersonationRequestStatuses),
  /** Who is asked. */
  userId: z.string(),
  /** Who is to act, as far as that is known. */
  actorId: z.string().nullable(),
  /** The application that asked. */
  creatorId: z.string(),
  /** What the subject token is to be bound to. */
  clientId: z.string().nullable(),
  resource: z.string().nullable(),
  scopes: z.array(z.string()).readonly().nullable(),
  reason: z.string().nullable(),
  ticket: z.string().nullable(),
  /** Two digits, which the person sees too. */
  number: z.string(),
  createdAt: timestamp,
  /** Until then it may be decided; once approved, used. */
  expiresAt: timestamp,
  decidedAt: timestamp.nullable(),
  /** The limits of an approval. `maxTtl` in seconds. */
  readOnly: z.boolean(),
  maxTtl: z.number().int().nullable(),
})

const createdAt = 1_767_323_045_678
const named = { tenantId: 'default', description: null } as const

export const examples = {
  user: {
    id: 'u8j2k4m6n8p0',
    username: 'ada',
    primaryEmail: 'ada@example.com',
    primaryPhone: null,
    name: 'Ada Lovelace',
    avatar: null,
    customData: { plan: 'gold' },
    identities: {},
    profile: {},
    applicationId: null,
    cimdClientId: null,
    isSuspended: false,
    hasPassword: true,
    lastSignInAt: createdAt,
    createdAt,
    updatedAt: createdAt,
  } satisfies z.output<typeof user>,
  role: {
    ...named,
    id: 'r7c1x5v9b3n7m1a5s9d3f',
    name: 'Reader',
    description: 'Reads orders',
    type: 'User',
    isDefault: false,
  } satisfies z.output<typeof role>,
  scope: {
    ...named,
    id: 's4g8h2j6k0l4q8w2e6r0t',
    resourceId: 'z5x9c3v7b1n5m9q3w7e1r',
    name: 'read:orders',
    description: 'Read orders',
    createdAt,
  } satisfies z.output<typeof scope>,
  organization: {
    ...named,
    id: 'o3y7u1i5o9p3',
    name: 'Acme',
    description: 'An organization',
    customData: {},
    isMfaRequired: false,
    color: {},
    branding: {},
    customCss: null,
    createdAt,
  } satisfies z.output<typeof organization>,
  'organization-role': { ...named, id: 'p6a0s4d8f2g6h0j4k8l2z', name: 'Member', type: 'User' } satisfies z.output<
    typeof organizationRole
  >,
  'organization-scope': { ...named, id: 'q1x5c9v3b7n1m5q9w3e7r', name: 'invite:members' } satisfies z.output<
    typeof organizationScope
  >,
  impersonation: {
    id: 'i9t3y7u1i5o9p3a7s1d5f',
    subjectId: 'u8j2k4m6n8p0',
    actorId: 'b1n5m9q3w7e1',
    actorVia: 'sign_in',
    actorSid: 'ps_a1d5f9g3h7j1k5l9z3',
    clientId: 'v3b7n1m5q9w3e7r1t5y9u',
    creatorId: 'c9v3b7n1m5q9w3e7r1t5y',
    resource: 'https://api.example.com',
    scopes: ['read:orders'],
    context: { ticketId: 'T-1' },
    reason: 'Support',
    ticket: 'T-1',
    access: null,
    approvalId: null,
    startedAt: createdAt,
    expiresAt: createdAt + 3_600_000,
    endedAt: null,
    endedBy: null,
  } satisfies z.output<typeof impersonation>,
  'impersonation-request': {
    id: 'q8w2e6r0t4y8u2i6o0p4a',
    status: 'pending',
    userId: 'u8j2k4m6n8p0',
    actorId: 'b1n5m9q3w7e1',
    creatorId: 'c9v3b7n1m5q9w3e7r1t5y',
    clientId: null,
    resource: 'https://api.example.com',
    scopes: ['read:orders'],
    reason: 'Support',
    ticket: 'T-1',
    number: '47',
    createdAt,
    expiresAt: createdAt + 600_000,
    decidedAt: null,
    readOnly: false,
    maxTtl: null,
  } satisfies z.output<typeof impersonationRequest>,
} as const

/** What events are about: each entity has a version, and its events an order. */
export type EntityKind = keyof typeof examples
