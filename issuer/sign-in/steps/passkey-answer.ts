import type { z } from 'zod'
import { onlyValue } from '../forms/read-form.ts'
import type { StepAnswer } from './step.ts'

/** What the script wrote into the form. Undefined when it is none. */
export const passkeyAnswer = <Schema extends z.ZodType>(
  { form }: Pick<StepAnswer<never>, 'form'>,
  schema: Schema,
): { proofId: string; credential: z.output<Schema> } | undefined => {
  const { data, success } = schema.safeParse(parsed(onlyValue(form, 'credential') ?? ''))
  return success ? { proofId: onlyValue(form, 'proofId') ?? '', credential: data } : undefined
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
