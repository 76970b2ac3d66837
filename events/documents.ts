import { z } from 'zod'
import { catalogue, type EventType } from './catalogue.ts'
import { apiVersion } from './outbox.ts'

/**
 * The events as documents for machines, made from the catalogue: a JSON Schema of every payload as receivers get it,
 * and an AsyncAPI 3 document around them. Payloads are open: members may be added within an `apiVersion`.
 */
export type JsonSchema = Record<string, unknown>

/**
 * The members of every payload beside `data`; what an event has besides those (`roleId`, `addedUserIds`, …) is not
 * forbidden.
 */
const envelope = z.looseObject({
  hookId: z.string().describe('The hook this delivery belongs to.'),
  id: z.uuid().describe('Id of the event: the same on every retry, and for every hook that gets it.'),
  version: z.int().min(1).describe('Counts the events of the entity from 1, without gaps.'),
  apiVersion: z.literal(apiVersion).describe('Format of this body. Ignore members that you do not know.'),
  correlationId: z.uuid().describe('The same in all events of one request.'),
  createdAt: z.iso.datetime().describe('When it happened.'),
  organizationId: z.string().optional().describe('The organization it happened in.'),
  sid: z
    .string()
    .optional()
    .describe(
      'The session because of which an API made the change, such as an impersonation: the `sid` of its tokens.',
    ),
  ip: z.string().describe('Where the request came from.'),
  userAgent: z.string().optional(),
  method: z.string(),
  path: z.string().describe('Of the request, below `/api`.'),
  matchedRoute: z.string(),
  params: z.record(z.string(), z.string()),
  status: z.int().describe('Of the answer to the request.'),
  test: z.literal(true).optional().describe('Sent to try out the hook: nothing happened.'),
})

export const occasionOf = ({ occurs, planned }: EventType): string =>
  `Occurs when ${occurs}.${planned ? ' Not sent yet.' : ''}`

/** Of one event type, JSON Schema 2020-12 without references. */
export const payloadSchema = (row: EventType): JsonSchema => {
  const { type, data } = row
  const schema = envelope.extend({ event: z.literal(type), data: data.describe('What the Management API answered.') })
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io: 'output',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
  return { title: type, description: occasionOf(row), ...json }
}

const schemas = (): Record<string, JsonSchema> =>
  Object.fromEntries(catalogue.map((row) => [row.type, payloadSchema(row)]))

/** Any payload; that of one type is `#/$defs/<type>`. */
export const eventsJsonSchema = (): JsonSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: `urn:surrogate:events:${apiVersion}`,
  title: 'Events of Surrogate',
  oneOf: catalogue.map(({ type }) => ({ $ref: `#/$defs/${type}` })),
  $defs: schemas(),
})

const text = (description: string): JsonSchema => ({ type: 'string', description })

/** What a delivery carries beside its body. */
export const deliveryHeaders: Readonly<Record<string, JsonSchema>> = {
  'webhook-id': text('Id of the event, as in the body.'),
  'webhook-timestamp': text('When this attempt was made, in seconds since the epoch.'),
  'webhook-signature': text(
    'Standard Webhooks v1 signatures, separated by spaces: several while a signing key is replaced.',
  ),
  'logto-signature-sha-256': text('HMAC-SHA-256 of the body with the newest signing key, in hexadecimal.'),
}

/** AsyncAPI 3.0: one channel, the webhooks, over which every event is sent. */
export const asyncApiDocument = (): JsonSchema => {
  const messages = catalogue.map((row) => [
    row.type,
    {
      name: row.type,
      title: row.type,
      summary: occasionOf(row),
      contentType: 'application/json',
      headers: { $ref: '#/components/schemas/DeliveryHeaders' },
      payload: { $ref: `#/components/schemas/${row.type}` },
    },
  ])
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Events of Surrogate',
      version: apiVersion,
      description: 'Signed webhooks, at least once, in order for each hook and entity.',
    },
    defaultContentType: 'application/json',
    channels: {
      webhooks: {
        // It is whatever each hook was registered with.
        address: null,
        description: 'The URL of each hook that is registered for the type.',
        messages: Object.fromEntries(catalogue.map(({ type }) => [type, { $ref: `#/components/messages/${type}` }])),
      },
    },
    operations: {
      deliver: {
        action: 'send',
        channel: { $ref: '#/channels/webhooks' },
        summary: 'POSTs the event to the hook. Any 2xx is success; anything else is tried again later.',
        messages: catalogue.map(({ type }) => ({ $ref: `#/channels/webhooks/messages/${type}` })),
      },
    },
    components: {
      messages: Object.fromEntries(messages),
      schemas: { DeliveryHeaders: { type: 'object', properties: deliveryHeaders }, ...schemas() },
    },
  }
}
