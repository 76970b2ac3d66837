import type { InteractionEventName, Staged } from './interaction-state.ts'
import type { PersonFacts } from './person-facts.ts'
import type { IdentifierType, Proof } from './proofs.ts'
import { type SignInSettings, wantedAtSignUp } from './settings.ts'

export type ProfileField = 'username' | 'password' | 'email' | 'phone' | 'emailOrPhone'

/** The address of a kind that the interaction gives the person, if it was proven here. */
export const provenAddress = (
  proofs: readonly Pick<Proof, 'purpose' | 'data'>[],
  type: Exclude<IdentifierType, 'username'>,
): string | undefined =>
  proofs.find(({ purpose, data }) => (purpose === 'register' || purpose === 'bind') && data.identifier?.type === type)
    ?.data.identifier?.value

/**
 * What the settings ask everybody to have, and this person lacks. Who signs in is not asked for a user name, which
 * would be one more way in where there is one; nor for a password where a passkey or an identity provider does. Who
 * comes from their enterprise is asked for nothing.
 */
export const missingProfile = ({
  event,
  settings: { signUp, socialSignIn },
  person,
  staged,
  proofs,
}: {
  event: InteractionEventName
  settings: SignInSettings
  person: PersonFacts | undefined
  staged: Staged
  proofs: readonly Proof[]
}): ProfileField[] => {
  const isNew = event === 'Register'
  const provider = proofs.find(({ kind }) => kind === 'federated')?.data.federated?.kind
  if (provider === 'sso' || (provider === 'social' && socialSignIn.skipRequiredIdentifiers)) return []
  const has: Readonly<Record<ProfileField, boolean>> = {
    username: staged.username !== undefined || (!isNew && person !== undefined),
    email: provenAddress(proofs, 'email') !== undefined || person?.hasEmail === true,
    phone: provenAddress(proofs, 'phone') !== undefined || person?.hasPhone === true,
    emailOrPhone: false,
    password:
      staged.password !== undefined ||
      provider !== undefined ||
      person?.hasIdentity === true ||
      (!isNew && (person?.hasPassword === true || (person?.passkeys ?? 0) > 0)),
  }
  const isThere = (field: ProfileField) => (field === 'emailOrPhone' ? has.email || has.phone : has[field])
  const wanted: ProfileField[] = [...wantedAtSignUp(signUp), ...(signUp.password ? (['password'] as const) : [])]
  return wanted.filter((field) => !isThere(field))
}
