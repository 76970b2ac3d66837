import { z } from 'zod'
import { defaultEntrypoint } from '../../../policies/decide.ts'
import { signatureAlgorithms } from '../../../policies/engine/index.ts'
import { isAddress } from '../../../policies/origin.ts'
import { duration, secret } from './values.ts'

const key = z.strictObject({
  id: z.string().min(1).describe('The keyid that signatures name.'),
  algorithm: z.enum(signatureAlgorithms).describe('Of the signature.'),
  file: z.string().min(1).describe('The public key, in PEM.'),
})

const verify = z.strictObject({
  keys: z.array(key).min(1).describe('Public keys.'),
  scope: z.string().min(1).optional().describe('The scope that signatures must name.'),
})

const isolation = z.strictObject({
  workers: z.number().int().min(1).max(64).default(2).describe('Threads.'),
  deadline: duration(1, 10_000)
    .prefault('50ms')
    .describe('An evaluation has 400 000 units for each ms: 403. After twice the processor time its thread is ended.'),
})

/** The section `policies:`. */
export const policies = z.strictObject({
  path: z.string().min(1).optional().describe('Folder of .rego files, compiled and watched, or a bundle file.'),
  bundle: z
    .string()
    .min(1)
    .refine((text) => !isAddress(text) || URL.canParse(text), 'must be a file or a URL')
    .optional()
    .describe('A bundle file, or the https address of one.'),
  poll: duration(1_000, 86_400_000).prefault('30s').describe('How often the address of a bundle is asked.'),
  token: secret.optional().describe('Bearer token for the address of a bundle.'),
  cache: z
    .string()
    .min(1)
    .optional()
    .describe('File that keeps the last good bundle of an address, for a start while it cannot be reached.'),
  verify: verify.optional().describe('Bundles must be signed by one of these keys.'),
  entrypoint: z
    .string()
    .min(1)
    .default(defaultEntrypoint)
    .describe('The rule that decides about routes that name none.'),
  shadow: z
    .string()
    .min(1)
    .optional()
    .describe('Rules that are asked beside the live ones and never enforced: a folder, a bundle file or its address.'),
  shadowSample: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('The part of all decisions that the shadow is asked about, 0 to 1.'),
  units: z
    .number()
    .int()
    .min(1_000)
    .max(2_000_000_000)
    .default(5_000_000)
    .describe('How much work an evaluation on the thread of the requests may be, before it is ended: 403.'),
  isolation: isolation.prefault({}).describe('For routes with isolation: worker.'),
})
