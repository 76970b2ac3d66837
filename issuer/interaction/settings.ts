import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { isPasswordExpired as isExpired } from '../directory/users/password-expiration.ts'
import type { InteractionEventName } from './interaction-state.ts'
import { secondFactors } from './person-facts.ts'
import type { StoredPersonFacts } from './person-facts-store.ts'
import type { IdentifierType, Proof, ProofData, ProofKindName } from './proofs.ts'
import type { ProfileField } from './required-profile.ts'

/** The settings of `/api/sign-in-exp` that decide what comes next. */
export type SignInSettings = Pick<
  SignInExperience,
  | 'signInMode'
  | 'signIn'
  | 'signUp'
  | 'mfa'
  | 'passkeySignIn'
  | 'passwordExpiration'
  | 'forgotPasswordMethods'
  | 'agreeToTermsPolicy'
  | 'termsOfUseUrl'
  | 'passwordPolicy'
  | 'verificationCodePolicy'
  | 'socialSignIn'
  | 'socialSignInConnectorTargets'
  | 'singleSignOnEnabled'
>

/** Whether people may begin this at all. */
export const allows = ({ signInMode }: SignInSettings, event: InteractionEventName): boolean =>
  event === 'Register' ? signInMode !== 'SignIn' : signInMode !== 'Register'

const codeKinds = { email: 'email_code', phone: 'phone_code' } as const satisfies Partial<
  Record<IdentifierType, ProofKindName>
>
export const codeKindOf = (type: 'email' | 'phone'): ProofKindName => codeKinds[type]

const isAddressProof = (kind: ProofKindName): boolean => Object.values<ProofKindName>(codeKinds).includes(kind)

/** What somebody can prove first to sign in. One-time tokens need no setting: whoever runs the issuer made them. */
export const firstFactors = (settings: SignInSettings): ProofKindName[] => [
  ...(settings.signIn.methods.some(({ password }) => password) ? (['password'] as const) : []),
  ...(['email', 'phone'] as const)
    .filter((type) => settings.signIn.methods.some((method) => method.identifier === type && method.verificationCode))
    .map((type) => codeKinds[type]),
  ...(settings.passkeySignIn.enabled ? (['passkey'] as const) : []),
  ...(settings.singleSignOnEnabled || settings.socialSignInConnectorTargets.length > 0 ? (['federated'] as const) : []),
]

/** Whether people may come by an identity provider of this kind. */
const isFederationEnabled = (
  { singleSignOnEnabled, socialSignInConnectorTargets }: SignInSettings,
  { federated }: ProofData,
): boolean =>
  federated?.kind === 'sso' ? singleSignOnEnabled : socialSignInConnectorTargets.includes(federated?.target ?? '')

/** Whether a proof counts under these settings. */
export const isEnabled = (settings: SignInSettings, { kind, purpose, data }: Proof): boolean => {
  if (kind === 'federated') return isFederationEnabled(settings, data)
  if (purpose === 'reset') return recoveryFactors(settings).includes(kind)
  if (purpose === 'bind' && kind === 'passkey' && settings.passkeySignIn.enabled) return true
  if (purpose === 'mfa' || (purpose === 'bind' && !isAddressProof(kind))) {
    return settings.mfa.factors.some((name) => secondFactors[name].proof === kind)
  }
  if (purpose !== 'sign_in' || kind === 'one_time_token') return true
  if (kind === 'passkey') return settings.passkeySignIn.enabled
  const method = settings.signIn.methods.find(({ identifier }) => identifier === data.identifier?.type)
  return (kind === 'password' ? method?.password : method?.verificationCode) === true
}

/** What an account begins with. Existing settings name email and phone together where either will do. */
export const wantedAtSignUp = ({
  identifiers,
  secondaryIdentifiers = [],
}: SignInSettings['signUp']): ProfileField[] => {
  const isEither = identifiers.includes('email') && identifiers.includes('phone')
  const first = isEither ? [...identifiers.filter((name) => name === 'username'), 'emailOrPhone' as const] : identifiers
  return [...new Set([...first, ...secondaryIdentifiers.map(({ identifier }) => identifier)])]
}

/** How somebody new can prove an address. */
export const registrationFactors = ({ signUp }: SignInSettings): ProofKindName[] =>
  (['email', 'phone'] as const)
    .filter((type) => wantedAtSignUp(signUp).some((field) => field === type || field === 'emailOrPhone'))
    .map((type) => codeKinds[type])

const recoveryByMethod = { EmailVerificationCode: 'email_code', PhoneVerificationCode: 'phone_code' } as const

export const recoveryFactors = ({ forgotPasswordMethods }: SignInSettings): ProofKindName[] =>
  (forgotPasswordMethods ?? (Object.keys(recoveryByMethod) as (keyof typeof recoveryByMethod)[])).map(
    (method) => recoveryByMethod[method],
  )

/** Whether the password has to be replaced before it opens anything. */
export const isPasswordExpired = (
  { passwordExpiration }: SignInSettings,
  { hasPassword, passwordChangedAt, isPasswordMarkedExpired }: StoredPersonFacts,
  now: Date,
): boolean =>
  hasPassword &&
  isExpired(
    {
      password_changed_at: new Date(passwordChangedAt),
      password_expired: isPasswordMarkedExpired,
      created_at: new Date(passwordChangedAt),
    },
    passwordExpiration,
    now,
  )
