import { z } from 'zod'
import { Secret } from '../../../platform/secret.ts'
import { fieldName, httpUrl, share } from './values.ts'

/** The section `telemetry:`. */

const attributeName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9._-]{0,127}$/, 'must be the name of an attribute, such as deployment.environment.name')

const fieldValue = z
  .string()
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/, 'must be a header value of visible ASCII')
  .transform((text) => new Secret(text))

export const telemetry = z.strictObject({
  otlp: httpUrl
    .refine(
      (address) => !/\/v1\/(?:traces|metrics|logs)\/?$/.test(address),
      'must end before /v1/traces: that and /v1/metrics are added',
    )
    .describe('The collector: OTLP over HTTP, in protobuf; `/v1/traces` and `/v1/metrics` are added to the address.'),
  sample: share
    .prefault('1%')
    .describe('Of the requests that no trusted proxy has decided about, how many are recorded as traces.'),
  headers: z.record(fieldName, fieldValue).default({}).describe('For the collector, such as `authorization`.'),
  resource: z
    .record(attributeName, z.string().max(256))
    .default({})
    .describe('Attributes of this gateway, such as `deployment.environment.name`.'),
})

export type TelemetrySettings = z.output<typeof telemetry>
