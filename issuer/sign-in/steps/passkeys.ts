import { authenticationCredential } from '../../directory/users/factors/index.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import { onlyValue } from '../forms/read-form.ts'
import type { StepAnswer } from './step.ts'

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What the script of a page put into its form (`passkeyForm`). Undefined when it is no credential. */
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
  const credential = authenticationCredential.safeParse(parsed(onlyValue(form, 'credential') ?? ''))
  const proofId = onlyValue(form, 'proofId') ?? ''
  if (!credential.success) return undefined
  const keep = onlyValue(form, 'keep') === 'yes'
  const answer = { proofId, credential: credential.data, keep }
  const { outcome } = await operations.passkeys.prove(interaction, visitor, answer, { ...request, status: 400 })
  count('passkey', outcome)
  return outcome
}
