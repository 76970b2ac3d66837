import type { z } from 'zod'
import { type Form, onlyValue } from '../../base/read-form.ts'

/** What the script of a page put into its form (`passkeyForm`). Undefined when it is no credential. */
export const credentialIn = <Schema extends z.ZodType>(form: Form, schema: Schema): z.output<Schema> | undefined => {
  try {
    return schema.safeParse(JSON.parse(onlyValue(form, 'credential') ?? '')).data
  } catch {
    return undefined
  }
}
