import type { SchemaObject } from './json-schema.ts'

const document = (operationId: string, summary: string) => ({
  get: {
    operationId,
    summary,
    tags: ['Service'],
    security: [],
    responses: {
      '200': {
        description: 'The document.',
        headers: { ETag: { schema: { type: 'string' } } },
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      '304': { description: 'It is still the one with the `ETag` in `If-None-Match`.' },
    },
  },
})

/** What is answered without an access token (`documents-router.ts`). */
export const publicPaths: Readonly<Record<string, SchemaObject>> = {
  '/status': {
    get: {
      operationId: 'getStatus',
      summary: 'Says that the service answers requests.',
      tags: ['Service'],
      security: [],
      responses: { '204': { description: 'It does.' } },
    },
  },
  '/openapi.json': document('getOpenApi', 'Reads this document.'),
  '/experience.openapi.json': document('getExperienceOpenApi', 'Reads the OpenAPI document of the Experience API.'),
  '/asyncapi.json': document('getAsyncApi', 'Reads the AsyncAPI 3 document of the events.'),
}
