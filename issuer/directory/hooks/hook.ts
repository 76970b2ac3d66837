import { z } from 'zod'
import { webhookSecretOf } from '../../../deliveries/hook-secrets.ts'
import { eventTypes } from '../../../events/catalogue.ts'
import { eventPatternOf } from '../../../events/event-patterns.ts'
import { ids, tenantId, timestamp } from '../../base/schemas.ts'

/** A hook: which events go where. */
export interface Hook {
  id: string
  name: string
  /** What it listens to. */
  events: string[]
  /** The one of `events`, for a hook that was registered by the older member of this name. */
  event: string | null
  url: string
  headers: Record<string, string>
  retries: number | null
  /** POSTs a minute, over all relays. Null: no limit. */
  rateLimit: number | null
  /** Only events of these organizations. Null: of any, and of none. */
  organizationIds: string[] | null
  enabled: boolean
  disabledReason: string | null
  signingKey: string
  createdAt: Date
}

const eventName = z.string().transform((name, context) => {
  const pattern = eventPatternOf(name)
  if (pattern !== undefined) return pattern
  const mustBeNamed = name.endsWith('.*') && [...eventTypes.keys()].some((type) => type.startsWith(name.slice(0, -1)))
  context.addIssue(
    mustBeNamed ? `"${name}" stands for events that must be named` : `there is no event "${name.slice(0, 64)}"`,
  )
  return z.NEVER
})
/** Types, and wildcards (`User.*`, `*`) for all but those that must be named. */
export const eventNames = z
  .array(eventName)
  .max(100)
  .transform((names) => [...new Set(names)])

// What the relay sets itself, what frames the message, and what would let one customer speak for another.
const reservedHeaders =
  /^(host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-.*|proxy-.*|sec-.*|cookie2?|forwarded|x-forwarded-.*|webhook-.*|surrogate-.*|logto-signature-.*)$/i

const customHeaders = z
  .record(
    z
      .string()
      .max(128)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is not a header name')
      .refine((name) => !reservedHeaders.test(name), 'is a header that cannot be set'),
    z
      .string()
      .max(4_096)
      .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
  )
  .refine((headers) => Object.keys(headers).length <= 20, 'at most 20 headers')
  .refine((headers) => {
    const names = Object.keys(headers).map((name) => name.toLowerCase())
    return new Set(names).size === names.length
  }, 'names a header twice')

export const hookConfig = z.object({
  url: z.string().min(1).max(2_048),
  headers: customHeaders.optional(),
  /** Accepted for existing clients; the schedule of retries is ours. */
  retries: z.number().int().min(0).max(10).optional(),
  /** POSTs a minute, over all relays. Absent: no limit. */
  rateLimit: z.number().int().min(1).max(600_000).optional(),
})

const members = {
  name: z.string().min(1).max(256),
  /** An older way to name a single event. Beside `events` it means nothing. */
  event: eventName.nullish(),
  events: eventNames,
  config: hookConfig,
  /** Only events of these organizations, and none that belong to no organization. Null or empty: every event. */
  organizationIds: ids.nullable().transform((list) => (list?.length ? list : null)),
  enabled: z.boolean(),
}

export const newHook = z.object({
  ...members,
  name: members.name.optional(),
  events: members.events.optional(),
  organizationIds: members.organizationIds.default(null),
  enabled: members.enabled.default(true),
})
export type NewHook = z.output<typeof newHook>

export const hookPatch = z.object(members).partial()
export type HookPatch = z.output<typeof hookPatch>

export const newSigningKeyBody = z.object({
  /** How long the replaced key signs along, in seconds; 0 ends every old key at once. */
  overlapSeconds: z.number().int().min(0).max(604_800).default(86_400),
})

export const hook = z.object({
  tenantId,
  id: z.string(),
  name: z.string(),
  /** The only event of a hook that was registered by this older member, whose `events` are empty then. */
  event: z.string().nullable(),
  events: z.array(z.string()),
  config: z.object({
    url: z.string(),
    headers: z.record(z.string(), z.string()).optional(),
    retries: z.number().optional(),
    rateLimit: z.number().optional(),
  }),
  organizationIds: z.array(z.string()).nullable(),
  signingKey: z.string(),
  webhookSecret: z.string(),
  enabled: z.boolean(),
  disabledReason: z.string().nullable(),
  createdAt: timestamp,
})
export const hookSigningKey = hook.pick({ signingKey: true, webhookSecret: true })

/**
 * As it is read. Holders of `read` alone are shown neither the signing key nor the values of headers, which often are
 * credentials; people see the key by itself, where they prove again who they are. With how many attempts the last 24
 * hours had, and how many of them succeeded, when that is asked for.
 */
export const readHook = hook.partial({ signingKey: true, webhookSecret: true }).extend({
  executionStats: z.object({ successCount: z.number(), requestCount: z.number() }).optional(),
})

/** What stands in the place of a value that is not shown. */
const masked = '********'

export const withoutKey = ({
  signingKey: _key,
  webhookSecret: _secret,
  ...shown
}: z.input<typeof hook>): z.input<typeof readHook> => shown

export const withMaskedHeaders = <Shown extends Pick<z.input<typeof readHook>, 'config'>>(shown: Shown): Shown => {
  const { headers, ...config } = shown.config
  const names = Object.keys(headers ?? {})
  return {
    ...shown,
    config: { ...config, ...(headers && { headers: Object.fromEntries(names.map((name) => [name, masked])) }) },
  }
}

/** An issuer of an older version changes `events` alone; then `event` is out of date. */
const isByEvent = ({ event, events }: Pick<Hook, 'event' | 'events'>) => events.length === 1 && events[0] === event

/** The row as the API shows it. */
export const toHook = ({
  url,
  headers,
  retries,
  rateLimit,
  signingKey,
  createdAt,
  ...row
}: Hook): z.input<typeof hook> => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  ...(isByEvent(row) ? { event: row.event, events: [] } : { event: null, events: row.events }),
  config: {
    url,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(retries !== null && { retries }),
    ...(rateLimit !== null && { rateLimit }),
  },
  organizationIds: row.organizationIds,
  signingKey,
  webhookSecret: webhookSecretOf(signingKey),
  enabled: row.enabled,
  disabledReason: row.disabledReason,
  createdAt: createdAt.getTime(),
})
