import { z } from 'zod'
import { isUrl } from '../logs/output.ts'
import { duration, httpUrl, secret } from './values.ts'

/** The sections `decisionLog:` and `accessLog:`. */

const maskPath = z.string().regex(/^\/(?:input|result)\/./, 'must be a JSON pointer under /input or /result')

const log = {
  to: z.union([z.literal('stdout'), httpUrl, z.string().regex(/^(?!https?:)./i)], 'must be stdout, a file or a URL'),
  /** Bytes that may wait to be written. */
  bufferSize: z.number().int().min(65_536).max(1_073_741_824).default(16_777_216),
  /** How lines are sent to a URL. */
  http: z
    .strictObject({
      token: secret.optional(),
      batchSize: z.number().int().min(1_024).max(16_777_216).optional(),
      interval: duration(10, 600_000).optional(),
    })
    .optional(),
}

const httpOnlyForUrls = ({ to, http }: { to: string; http?: unknown }, context: z.RefinementCtx) => {
  if (http !== undefined && !isUrl(to))
    context.addIssue({ code: 'custom', path: ['http'], message: 'needs a URL in to' })
}

export const decisionLog = z
  .strictObject({
    ...log,
    mask: z.array(z.union([maskPath, z.strictObject({ path: maskPath, value: z.unknown() })])).default([]),
    labels: z.record(z.string().min(1), z.string()).default({}),
  })
  .superRefine(httpOnlyForUrls)

export const accessLog = z.strictObject(log).superRefine(httpOnlyForUrls)
