import type { InteractionEventName } from './interaction-state.ts'
import type { SecondFactor } from './person-facts.ts'
import type { IdentifierType, Proof, ProofKindName } from './proofs.ts'

/** The settings of `/api/sign-in-exp` that decide what comes next. */
export interface SignInSettings {
  signInMode: 'SignIn' | 'Register' | 'SignInAndRegister'
  signIn: { methods: readonly SignInMethod[] }
  signUp: {
    /** What an account begins with; every one of them is asked for. */
    identifiers: readonly ('username' | 'email' | 'phone' | 'emailOrPhone')[]
    password: boolean
    /** Whether addresses have to be verified. */
    verify: boolean
  }
  mfa: {
    factors: readonly SecondFactor[]
    policy: 'Mandatory' | 'PromptOnlyAtSignIn' | 'PromptAtSignInAndSignUp' | 'UserControlled' | 'NoPrompt'
  }
  passkeySignIn: { enabled: boolean }
  /** Null: all. */
  forgotPasswordMethods: readonly ('EmailVerificationCode' | 'PhoneVerificationCode')[] | null
  agreeToTermsPolicy: 'Automatic' | 'ManualRegistrationOnly' | 'Manual'
  termsOfUseUrl: string | null
}

interface SignInMethod {
  identifier: IdentifierType
  password: boolean
  verificationCode: boolean
}

/** What the rules say of a sign-in; see `docs/sign-in-rules.md`. */
export interface SignInDecision {
  allow: boolean
  reason?: string | undefined
  require: readonly ('mfa' | 'phr' | 'enrol' | 'captcha')[]
}

/** Whether people may begin this at all. */
export const allows = ({ signInMode }: SignInSettings, event: InteractionEventName): boolean =>
  event === 'Register' ? signInMode !== 'SignIn' : signInMode !== 'Register'

const codeKinds = { email: 'email_code', phone: 'phone_code' } as const satisfies Partial<
  Record<IdentifierType, ProofKindName>
>
export const codeKindOf = (type: 'email' | 'phone'): ProofKindName => codeKinds[type]

/** What somebody can prove first to sign in. One-time tokens need no setting: whoever runs the issuer made them. */
export const firstFactors = ({ signIn: { methods }, passkeySignIn }: SignInSettings): ProofKindName[] => [
  ...(methods.some(({ password }) => password) ? (['password'] as const) : []),
  ...(['email', 'phone'] as const)
    .filter((type) => methods.some((method) => method.identifier === type && method.verificationCode))
    .map((type) => codeKinds[type]),
  ...(passkeySignIn.enabled ? (['passkey'] as const) : []),
]

/** Whether a proof of who somebody is counts under these settings. */
export const isEnabled = (settings: SignInSettings, { kind, purpose, data }: Proof): boolean => {
  if (purpose !== 'sign_in' || kind === 'one_time_token') return true
  if (kind === 'passkey') return settings.passkeySignIn.enabled
  const method = settings.signIn.methods.find(({ identifier }) => identifier === data.identifier?.type)
  return (kind === 'password' ? method?.password : method?.verificationCode) === true
}

/** How somebody new can prove an address. */
export const registrationFactors = ({ signUp }: SignInSettings): ProofKindName[] =>
  (['email', 'phone'] as const)
    .filter((type) => signUp.identifiers.includes(type) || signUp.identifiers.includes('emailOrPhone'))
    .map((type) => codeKinds[type])

const recoveryByMethod = { EmailVerificationCode: 'email_code', PhoneVerificationCode: 'phone_code' } as const

export const recoveryFactors = ({ forgotPasswordMethods }: SignInSettings): ProofKindName[] =>
  (forgotPasswordMethods ?? (Object.keys(recoveryByMethod) as (keyof typeof recoveryByMethod)[])).map(
    (method) => recoveryByMethod[method],
  )
