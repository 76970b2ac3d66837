import { z } from 'zod'
import { address, tls } from './listen.ts'
import { bytes } from './values.ts'

/** `inspection:`, the listener that tells what the gateway decides and why. */

export const inspection = z.strictObject({
  ...address(9303),
  tls: tls.optional().describe('Certificates, as of `listen`: the listener speaks TLS.'),
  audience: z
    .string()
    .min(1)
    .max(2_048)
    .describe("The `aud` of tokens that may inspect, with the scopes `inspect`, `evaluate` and `edit`. No route's."),
  issuers: z
    .array(z.string())
    .min(1, 'must name an issuer at least')
    .optional()
    .describe('Whose tokens are taken. Default: those of the only issuer; mandatory when there is more than one.'),
  keep: bytes(1_048_576, 1_073_741_824)
    .prefault('64MB')
    .describe('Memory for the last decisions, of all workers together. The oldest go first.'),
  savePolicies: z
    .boolean()
    .default(false)
    .describe('Whether tokens with the scope `edit` may save rules in the folder `policies.path`.'),
})

export type InspectionSettings = z.output<typeof inspection>
