import { problem } from '../../base/errors/problems.ts'
import { isSameSite } from './links.ts'
import type { SignInExperience } from './sign-in-experience.ts'

/**
 * What no single member can tell: whether people could still sign in, and sign up, with these settings. Throws what
 * Logto answers.
 */
export const checkSignInExperience = (experience: SignInExperience, baseUrl: string): void => {
  checkMfa(experience)
  checkSignUp(experience)
  const { passwordPolicy, passwordExpiration, signInPages, emailBlocklistPolicy } = experience
  if (passwordPolicy.length.min > passwordPolicy.length.max) {
    throw problem('guard.invalid_input', { detail: 'passwordPolicy.length: min must not be greater than max' })
  }
  if (passwordExpiration.enabled && passwordExpiration.validPeriodDays === undefined) {
    throw problem('guard.invalid_input', { detail: 'passwordExpiration.validPeriodDays: is needed when enabled' })
  }
  const patterns = [...emailBlocklistPolicy.customBlocklist, ...emailBlocklistPolicy.customAllowlist]
  const wrong = patterns.find((pattern) => !emailPattern.test(pattern))
  if (wrong !== undefined) {
    throw problem('sign_in_experiences.invalid_custom_email_blocklist_format', { data: { items: [wrong] } })
  }
  checkSignInPages(signInPages, baseUrl)
}

/** `bar@example.com`, `@example.com`, `foo*@example.com`, `@*.example.com`. */
const emailPattern = /^[^\s@]*@[^\s@]+$/

/** Elsewhere, browsers would not send the cookies that signing in needs. */
export const checkSignInPages = (signInPages: string | null, baseUrl: string): void => {
  if (signInPages === null || isSameSite(signInPages, baseUrl)) return
  throw problem('sign_in_experiences.sign_in_pages_not_same_site', { data: { site: new URL(baseUrl).host } })
}

const checkMfa = ({ mfa: { factors } }: SignInExperience) => {
  if (new Set(factors).size < factors.length) throw problem('sign_in_experiences.duplicated_mfa_factors')
  if (factors.length === 1 && factors[0] === 'BackupCode') {
    throw problem('sign_in_experiences.backup_code_cannot_be_enabled_alone')
  }
}

const checkSignUp = ({ signIn: { methods }, signUp, signInMode }: SignInExperience) => {
  const named = methods.map(({ identifier }) => identifier)
  if (new Set(named).size < named.length || new Set(signUp.identifiers).size < signUp.identifiers.length) {
    throw problem('guard.invalid_input', { detail: 'signIn, signUp: an identifier stands in each of them once' })
  }
  for (const { identifier, password, verificationCode } of methods) {
    if (!password && !verificationCode) {
      throw problem('sign_in_experiences.at_least_one_authentication_factor', { data: { identifier } })
    }
    if (identifier === 'username' && !password) {
      throw problem('sign_in_experiences.username_requires_password', { data: { identifier } })
    }
  }
  if (signInMode === 'SignIn') return
  const { identifiers, password, verify } = signUp
  if (identifiers.includes('username') && !password) throw problem('sign_in_experiences.username_requires_password')
  if (identifiers.some((identifier) => identifier !== 'username') && !verify) {
    throw problem('sign_in_experiences.passwordless_requires_verify')
  }
  for (const identifier of identifiers) {
    const method = methods.find((one) => one.identifier === identifier)
    const data = { identifier }
    if (!method) throw problem('sign_in_experiences.miss_sign_up_identifier_in_sign_in', { data })
    if (password && !method.password) throw problem('sign_in_experiences.password_sign_in_must_be_enabled', { data })
    if (!password && !method.verificationCode) {
      throw problem('sign_in_experiences.code_sign_in_must_be_enabled', { data })
    }
  }
}
