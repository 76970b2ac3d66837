import { onlyValue } from '../../base/read-form.ts'
import { isMfaMandatory } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { shortestPassword } from '../../directory/users/password-policy/policy.ts'
import type { ProfileField } from '../../interaction/required-profile.ts'
import { allows, type SignInSettings } from '../../interaction/settings.ts'
import {
  type DetailsPurpose,
  detailsPage,
  type Page,
  type PageProvider,
  type PasswordError,
  type ProviderNotice,
  type UsernameError,
} from '../../pages/index.ts'
import { maxPasswordBytes, pageOf, type StepAnswer, type StepView } from './step.ts'

/** A user name and a password: a page of the steps that ask for them. */

export interface DetailsEntered {
  username?: string
  usernameError?: UsernameError | undefined
  passwordError?: PasswordError | undefined
}

export const showDetails = (
  view: StepView,
  {
    purpose,
    missing,
    account,
    ...by
  }: {
    purpose: DetailsPurpose
    missing: readonly ProfileField[]
    account?: string | undefined
    providers?: readonly PageProvider[]
    providerNotice?: ProviderNotice | undefined
  },
  { username, usernameError, passwordError }: DetailsEntered = {},
): Page => {
  const { settings, state } = view.situation
  const asksUsername = missing.includes('username')
  const isTaken = state.notice === 'username_taken' && asksUsername && username === undefined
  return detailsPage({
    ...pageOf(view),
    ...{ purpose, asksUsername, username, account },
    ...by,
    passwordLength: missing.includes('password') ? shortestFor(settings) : undefined,
    errors: { username: usernameError ?? (isTaken ? 'taken' : undefined), password: passwordError },
    canSignIn: allows(settings, 'SignIn'),
  })
}

const shortestFor = ({ passwordPolicy, mfa }: SignInSettings): number =>
  shortestPassword(passwordPolicy, { isMfaMandatory: isMfaMandatory(mfa) })

export const submitDetails = async (
  answer: StepAnswer<DetailsEntered>,
  missing: readonly ProfileField[],
): Promise<void> => {
  const { form, goOn, again } = answer
  const username = (onlyValue(form, 'username') ?? '').trim()
  const asksUsername = missing.includes('username')
  const usernameError = asksUsername ? await stageUsername(answer, username) : undefined
  // A name that is no good does not keep anybody from hearing the same of the password.
  const passwordError = missing.includes('password')
    ? await stagePassword(answer, {
        password: onlyValue(form, 'password') ?? '',
        // What was chosen just now must not be the password.
        username: asksUsername ? username : undefined,
        isLost: usernameError !== undefined,
      })
    : undefined
  if (usernameError === undefined && passwordError === undefined) return goOn()
  const status = usernameError === 'too_many_requests' ? 429 : 400
  await again({ username, usernameError, passwordError }, status)
}

type Errors<E> = Readonly<Record<string, E | undefined>>

const usernameErrors: Errors<UsernameError> = {
  taken: 'taken',
  invalid: 'invalid',
  too_many_requests: 'too_many_requests',
}

const stageUsername = async (
  { operations, interaction, visitor }: StepAnswer<DetailsEntered>,
  username: string,
): Promise<UsernameError | undefined> => {
  if (username === '') return 'missing'
  const { outcome } = await operations.staging.username(interaction, username, visitor)
  return usernameErrors[outcome]
}

const stagePassword = async (
  { operations, interaction }: StepAnswer<DetailsEntered>,
  { password, username, isLost }: { password: string; username: string | undefined; isLost: boolean },
): Promise<PasswordError | undefined> => {
  if (password === '') return 'missing'
  if (Buffer.byteLength(password) > maxPasswordBytes) return 'too_long'
  // The page asks for both again: hashing this one would be for nothing.
  if (isLost) return undefined
  const known = { ...interaction, staged: { ...interaction.staged, ...(username !== undefined && { username }) } }
  const staged = await operations.staging.password(known, password)
  if (staged.outcome === 'rejected') return { issues: staged.issues }
  return staged.outcome === 'same' ? 'same' : undefined
}
