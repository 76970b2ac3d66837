import { z } from 'zod'
import { bytes, duration, httpUrl, isUrl, secret, share } from './values.ts'

/** The sections `decisionLog:` and `accessLog:`. */

const maskPath = z
  .string()
  .regex(/^\/(?:input|result)\/./, 'must be a JSON pointer under /input or /result')
  .describe('JSON pointer under /input or /result.')

const upload = z.strictObject({
  token: secret.optional().describe('Bearer token for the collector.'),
  batchSize: bytes(1_024, 16_777_216)
    .prefault('256kB')
    .describe('Of lines after which they are sent at once, and of one POST before it is compressed.'),
  interval: duration(10, 600_000).prefault('5s').describe('Longest wait of a line for others.'),
})

/** Where the file does not say how lines are sent. */
export const uploadDefaults = upload.parse({})

const log = {
  to: z
    .union([z.literal('stdout'), httpUrl, z.string().regex(/^(?!https?:)./i)], 'must be stdout, a file or a URL')
    .describe('stdout, a file, or the URL of a collector.'),
  bufferSize: bytes(65_536, 1_073_741_824)
    .prefault('16MB')
    .describe('What may wait to be written; beyond it lines are dropped and counted.'),
  http: upload.optional().describe('How lines are sent to a URL.'),
}

const httpOnlyForUrls = ({ to, http }: { to: string; http?: unknown }, context: z.RefinementCtx) => {
  if (http !== undefined && !isUrl(to))
    context.addIssue({ code: 'custom', path: ['http'], message: 'needs a URL in to' })
}

const mask = z.union([
  maskPath,
  z.strictObject({ path: maskPath, value: z.unknown().describe('Stands in its place.') }),
])

export type Mask = z.output<typeof mask>

export const decisionLog = z
  .strictObject({
    ...log,
    mask: z
      .array(mask)
      .default([])
      .describe('JSON pointers under /input or /result to leave out, or with a value to replace.'),
    sample: z
      .strictObject({
        allowed: share.prefault('100%').describe('Of the requests that were let through and answered.'),
        denied: share.prefault('100%').describe('Of those that were refused; failures of ours are always written.'),
      })
      .optional()
      .describe('How many requests get a line. Default: all.'),
    body: z
      .enum(['erase', 'keep'])
      .default('erase')
      .describe('Of requests, on routes with `policyBody`: left out, or kept as the policy saw it.'),
    labels: z.record(z.string().min(1), z.string()).default({}).describe('In every event.'),
  })
  .superRefine(httpOnlyForUrls)

export const accessLog = z.strictObject(log).superRefine(httpOnlyForUrls)

export type LogSettings = z.output<typeof accessLog>
export type DecisionLogSettings = z.output<typeof decisionLog>
