import { z } from 'zod'
import { defaultEntrypoint } from '../../policies/decide.ts'
import { signatureAlgorithms } from '../../policies/engine/signatures.ts'
import { isAddress } from '../../policies/origin.ts'
import { duration, secret } from './values.ts'

/** The section `policies:`. */
export const policies = z
  .strictObject({
    path: z.string().min(1).optional(),
    bundle: z
      .string()
      .min(1)
      .refine((text) => !isAddress(text) || URL.canParse(text), 'must be a file or a URL')
      .optional()
      .describe('A bundle file, or the https address of one.'),
    /** Of a bundle behind an address: how often it is asked for, and with which bearer token. */
    poll: duration(1_000, 86_400_000).default(30_000),
    token: secret.optional(),
    /** Keeps the last good bundle of an address, for a start while it cannot be reached. */
    cache: z.string().min(1).optional(),
    /** Bundles must be signed by one of these keys. */
    verify: z
      .strictObject({
        keys: z
          .array(
            z.strictObject({
              id: z.string().min(1),
              algorithm: z.enum(signatureAlgorithms),
              file: z.string().min(1),
            }),
          )
          .min(1),
        scope: z.string().min(1).optional(),
      })
      .optional(),
    entrypoint: z.string().min(1).default(defaultEntrypoint),
    /** Asked beside the live policies and never enforced: a folder, a bundle file or its address. */
    shadow: z.string().min(1).optional(),
    shadowSample: z.number().min(0).max(1).default(1),
    /** For routes with `isolation: worker`. */
    isolation: z
      .strictObject({
        workers: z.number().int().min(1).max(64).default(2),
        deadline: duration(1, 10_000).default(50),
      })
      .prefault({}),
  })
  .prefault({})
