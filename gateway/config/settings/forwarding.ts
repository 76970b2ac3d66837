import { z } from 'zod'
import { fieldName } from './values.ts'

/** The larger rows of a route about how its requests are forwarded. */

/** Written like a canonical path, and without escapes, so that what begins with it stays canonical. */
const isPlainPath = (text: string): boolean =>
  text === '/' || (/^(?:\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+\/?$/.test(text) && !/\/\.\.?(?:\/|$)/.test(text))

export const rewrite = z.strictObject({
  prefix: z
    .strictObject({
      from: z.string().describe('The literal beginning of `path`, in whole segments.'),
      to: z
        .string()
        .refine(isPlainPath, 'must be a path without query, escapes, dot segments and empty segments')
        .describe('What stands in its place upstream; `/` leaves it out, as `stripPrefix` does.'),
    })
    .describe('One beginning of the path for another.'),
})

/** RFC 9110 §5.5, visible ASCII. */
const fieldValue = z
  .string()
  .max(4_096)
  .regex(/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/, 'must be visible ASCII without spaces around it')

/** What frames an answer, belongs to one connection, or is the gateway's own word. */
const notToBeChanged =
  /^(?:connection|keep-alive|transfer-encoding|te|trailer|upgrade|proxy-.*|content-(?:length|encoding|range)|sec-websocket-.*|www-authenticate|x-request-id|retry-after|ratelimit.*)$/

const answerField = fieldName.refine(
  (name) => !notToBeChanged.test(name),
  'frames the answer, belongs to the connection, or is said by the gateway itself',
)

export const responseHeaders = z
  .strictObject({
    remove: z.array(answerField).max(64).default([]).describe('Fields of the upstream that clients do not get.'),
    set: z
      .record(answerField, fieldValue)
      .default({})
      .describe("Fields of every answer, the gateway's own refusals too; in the place of the upstream's."),
  })
  .refine(({ remove, set }) => !remove.some((name) => Object.hasOwn(set, name)), {
    path: ['remove'],
    message: "a field that is set takes the place of the upstream's: leave it out here",
  })

export const routeTargets = z.strictObject({
  match: z
    .strictObject({
      header: fieldName.describe('Any client may send it: it is no proof of anything.'),
      value: z.string().min(1).max(1_024).describe('The whole value; two of the header never match.'),
    })
    .describe('A header that the client sends.'),
  labels: z
    .record(z.string(), z.string())
    .refine((labels) => Object.keys(labels).length > 0, 'must name a label at least')
    .describe('Such requests go to targets with all of these labels only; when there are none: 503.'),
})
