import { z } from 'zod'
import { impersonationInputSchema } from './impersonation.ts'
import { policyInputSchema } from './input.ts'
import { signInInputSchema } from './sign-in.ts'

/**
 * JSON Schemas of policy inputs by the name that rule files use (`# schemas: - input: schema.gateway`). `policy check`
 * hands them to OPA's type checker; `input-schema.json` is the committed copy of the gateway's,
 * `signin-input-schema.json` that of the sign-in rules, for editors and readers.
 */
export const inputSchemas = {
  gateway: z.toJSONSchema(policyInputSchema, { target: 'draft-7' }),
  impersonation: z.toJSONSchema(impersonationInputSchema, { target: 'draft-7' }),
  signin: z.toJSONSchema(signInInputSchema, { target: 'draft-7' }),
}
