import type { z } from 'zod'
import type { ProblemCode } from '../../base/errors/problems.ts'
import { inputSchema, type SchemaObject } from './json-schema.ts'

/** Bodies of requests: each is a component that has the name of its operation. */

interface Described {
  operationId: string
  body?: z.ZodType
}

/** What is wrong with bodies, whatever the operation. */
export const ofBodies: readonly ProblemCode[] = [
  'guard.invalid_json',
  'guard.body_too_large',
  'guard.unsupported_media_type',
]

export const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

const bodyName = ({ operationId }: Described) => `${capitalized(operationId)}Body`

/** The member `requestBody` of an operation that takes one. */
export const requestBodyOf = (route: Described): SchemaObject =>
  route.body
    ? {
        requestBody: {
          // An absent body is an empty object.
          required: !route.body.safeParse({}).success,
          content: { 'application/json': { schema: { $ref: `#/components/schemas/${bodyName(route)}` } } },
        },
      }
    : {}

export const bodiesOf = (routes: readonly Described[]): Record<string, SchemaObject> =>
  Object.fromEntries(routes.flatMap((route) => (route.body ? [[bodyName(route), inputSchema(route.body)]] : [])))
