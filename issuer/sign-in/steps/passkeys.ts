import type { z } from 'zod'
import { onlyValue } from '../../base/read-form.ts'
import { authenticationCredential } from '../../directory/users/factors/index.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import type { StepAnswer } from './step.ts'

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What the script of a page put into its form (`passkeyForm`). Undefined when it is no credential. */
export const passkeyAnswer = <Schema extends z.ZodType>(
  { form }: Pick<StepAnswer<never>, 'form'>,
  schema: Schema,
): { proofId: string; credential: z.output<Schema> } | undefined => {
  const { data, success } = schema.safeParse(parsed(onlyValue(form, 'credential') ?? ''))
  return success ? { proofId: onlyValue(form, 'proofId') ?? '', credential: data } : undefined
}

/** Undefined when the form holds no credential. */
export const provePasskey = async ({
  operations,
  interaction,
  visitor,
  form,
  request,
  count,
}: Pick<StepAnswer<never>, 'operations' | 'interaction' | 'visitor' | 'form' | 'request' | 'count'>): Promise<
  AttemptOutcome['outcome'] | undefined
> => {
  const shown = passkeyAnswer({ form }, authenticationCredential)
  if (!shown) return undefined
  const keep = onlyValue(form, 'keep')
  const answer = { ...shown, ...(keep !== undefined && { keep: keep === 'yes' }) }
  const { outcome } = await operations.passkeys.prove(interaction, visitor, answer, { ...request, status: 400 })
  count('passkey', outcome)
  return outcome
}
