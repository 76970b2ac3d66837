import { z } from 'zod'
import { impersonationInputSchema } from './impersonation.ts'
import { policyInputSchema } from './input.ts'

/**
 * JSON Schemas of policy inputs by the name that rule files use (`# schemas: - input: schema.gateway`). `policy check`
 * hands them to OPA's type checker; `input-schema.json` is the committed copy of the gateway's, for editors and
 * readers.
 */
export const inputSchemas = {
  gateway: z.toJSONSchema(policyInputSchema, { target: 'draft-7' }),
  impersonation: z.toJSONSchema(impersonationInputSchema, { target: 'draft-7' }),
}
