import type { ProofKindName } from '../../interaction/proofs.ts'
import type { AccountPerson } from '../person.ts'
import { availableVerifications } from './available.ts'
import { type CodeVerifications, createCodeVerifications } from './codes.ts'
import type { VerificationDependencies } from './dependencies.ts'
import { createPasskeyVerifications, type PasskeyVerifications } from './passkeys.ts'
import { createTypedVerifications, type TypedVerifications } from './typed.ts'

export type { VerificationDependencies } from './dependencies.ts'

/** How people prove, again, who they are, and what they want to add to their account. */
export interface Verifications extends TypedVerifications {
  /** With what the person can do so now, the strongest first. */
  available(person: AccountPerson): Promise<ProofKindName[]>
  codes: CodeVerifications
  passkeys: PasskeyVerifications
}

export const createVerifications = (dependencies: VerificationDependencies): Verifications => {
  const { database, messages, settings } = dependencies
  return {
    ...createTypedVerifications(dependencies),
    available: ({ userId }) =>
      availableVerifications(database.query, userId, settings.experience(), (type) =>
        messages.isAvailable(type === 'phone' ? 'sms' : 'email'),
      ),
    codes: createCodeVerifications(dependencies),
    passkeys: createPasskeyVerifications(dependencies),
  }
}
