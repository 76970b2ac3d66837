import { z } from 'zod'
import { eventPatternOf, typesMatching } from '../../../events/event-patterns.ts'
import { type EntityKind, examples } from '../../../events/records.ts'
import { type Route, route } from '../../base/route.ts'
import { id, timestampText } from '../../base/schemas.ts'
import type { EventFeed } from './feed.ts'

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(least).max(most))

/** Separated by commas. */
const list = <Item extends z.ZodType<unknown, string>>(item: Item) =>
  z
    .string()
    .max(8_192)
    .transform((text) => text.split(',').map((one) => one.trim()))
    .pipe(z.array(item).min(1).max(200))

const pattern = z.string().transform((name, context) => {
  const found = eventPatternOf(name)
  if (found !== undefined) return found
  context.addIssue(`there is no event "${name.slice(0, 64)}"`)
  return z.NEVER
})

const entityKinds = Object.keys(examples) as EntityKind[]

/** What events are about: `<kind>:<id>`. */
const entity = z
  .string()
  .max(256)
  .regex(
    new RegExp(`^(?:${entityKinds.join('|')}):.`, 's'),
    `must be one of ${entityKinds.join(', ')}, a colon and an id`,
  )
  .transform((text) => ({ kind: text.slice(0, text.indexOf(':')), id: text.slice(text.indexOf(':') + 1) }))

const query = z.object({
  /** The `cursor` of the last answer. Without it the oldest events that are kept come first. */
  after: z
    .string()
    .regex(/^\d{1,15}$/, 'must be the cursor of an earlier answer')
    .transform(Number)
    .optional(),
  /** Where to begin without a cursor, in ms since the epoch. */
  since: timestampText.optional(),
  types: list(pattern).describe('Types and wildcards (`User.*`), separated by commas.').optional(),
  organizationIds: list(id).describe('Only events of these organizations; separated by commas.').optional(),
  entity: entity.describe('Only events about this one: its kind, a colon, its id (`user:u8j2k4m6n8p0`).').optional(),
  limit: wholeNumber(1, 1_000).describe('Events of an answer. Default 100.').optional(),
  wait: wholeNumber(0, 60).describe('Seconds to wait when there is none yet. Default 0.').optional(),
})

const page = z.object({
  events: z.array(
    z.looseObject({
      id: z.string(),
      event: z.string(),
      version: z.number(),
      createdAt: z.string(),
      data: z.unknown(),
    }),
  ),
  /** The `after` of the next request. */
  cursor: z.string(),
  /** There are more already: ask at once. */
  more: z.boolean(),
})

export interface EventFeedDependencies {
  eventFeed: Pick<EventFeed, 'read'>
}

/** Whoever may register a webhook for everything may as well read everything. */
export const eventsRoutes = ({ eventFeed }: EventFeedDependencies): Route[] => [
  route({
    method: 'GET',
    path: '/events',
    operationId: 'readEvents',
    summary: 'Reads the events of the last 14 days in order, from a cursor on; waits for the next when asked to.',
    scope: 'hooks',
    query,
    status: 200,
    response: page,
    problems: ['events.cursor_expired'],
    async handle({ query: { after, since, types = ['*'], organizationIds, entity, limit = 100, wait = 0 } }) {
      const found = await eventFeed.read({
        after,
        since,
        types: typesMatching(types),
        organizationIds,
        entity,
        limit,
        waitMs: wait * 1_000,
      })
      const events = found.payloads.map((payload) => JSON.parse(payload.toString()))
      return { body: { events, cursor: String(found.cursor), more: found.more } }
    },
  }),
]
