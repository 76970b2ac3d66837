import { catalogue } from '../../../events/catalogue.ts'
import { deliveryHeaders, occasionOf, payloadSchema } from '../../../events/documents.ts'
import type { SchemaObject } from './json-schema.ts'

const nameOf = (type: string) => `${type.replaceAll('.', '')}Event`

/** What hooks are called with, one entry per event type (`webhooks` of OpenAPI 3.1). */
export const webhooks = (): Record<string, SchemaObject> =>
  Object.fromEntries(
    catalogue.map((row) => [
      row.type,
      {
        post: {
          operationId: `on${nameOf(row.type)}`,
          summary: occasionOf(row),
          ...(row.named && { description: 'Delivered only to hooks that name it.' }),
          tags: ['Events'],
          // The signature authenticates it.
          security: [],
          parameters: Object.entries(deliveryHeaders).map(([name, { description, ...schema }]) => ({
            name,
            in: 'header',
            required: true,
            description,
            schema,
          })),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: { $ref: `#/components/schemas/${nameOf(row.type)}` } } },
          },
          responses: {
            '2XX': { description: 'Received.' },
            '410': { description: 'Nobody is here any more: the hook is disabled.' },
            default: { description: 'Not received: it is tried again later.' },
          },
        },
      },
    ]),
  )

export const eventComponents = (): Record<string, SchemaObject> =>
  Object.fromEntries(catalogue.map((row) => [nameOf(row.type), payloadSchema(row)]))
