import type { StepName } from '../../interaction/step.ts'
import { blocked } from './blocked.ts'
import { captcha } from './captcha.ts'
import { consent } from './consent.ts'
import { enrol } from './enrol.ts'
import { mfa } from './mfa.ts'
import { newPassword } from './new-password.ts'
import { passkeyOffer } from './passkey-offer.ts'
import { profile, register } from './register.ts'
import { reset } from './reset.ts'
import { selectAccount } from './select-account.ts'
import { signIn } from './sign-in.ts'
import type { SignInStep } from './step.ts'
import { terms } from './terms.ts'

/** The steps that have a page, each a file. */
export const steps = {
  sign_in: signIn,
  mfa,
  enrol,
  passkey: passkeyOffer,
  terms,
  captcha,
  register,
  reset,
  new_password: newPassword,
  profile,
  select_account: selectAccount,
  consent,
  blocked,
  // biome-ignore lint/suspicious/noExplicitAny: each step knows what it shows again.
} satisfies Partial<Record<StepName, SignInStep<any>>>

export type FormPage = keyof typeof steps
