import type { InteractionEventName } from './interaction-state.ts'
import {
  captcha,
  consent,
  expectedPerson,
  expiredPassword,
  newPassword,
  profile,
  register,
  reset,
  rules,
  selectAccount,
  signIn,
  suspended,
  terms,
} from './questions.ts'
import { anotherFactor, enrol, mfa, passkey } from './second-factor-questions.ts'
import type { Question, Situation } from './situation.ts'
import { denied, type Step, step } from './step.ts'

/** The order of questions. Each answers only while something is missing for it. */
const stepsOf: Readonly<Record<InteractionEventName, readonly Question[]>> = {
  SignIn: [
    signIn,
    selectAccount,
    expectedPerson,
    rules,
    captcha,
    mfa,
    anotherFactor,
    suspended,
    expiredPassword,
    profile,
    enrol,
    passkey,
    terms,
    consent,
  ],
  // Somebody new is never whom the client expects.
  Register: [expectedPerson, register, rules, captcha, enrol, terms, consent],
  // It leads to a new password, and to nothing else: whoever has set one signs in with it.
  ForgotPassword: [captcha, reset, newPassword],
}

/**
 * What comes next, of what is known alone. Pages show it, and `finish` asks it again, of locked rows, before anything
 * is committed: no way around a step leads to a code.
 */
export const nextStep = (situation: Situation): Step => {
  if (situation.state.isCancelled) return denied('access_denied', 'The sign-in was cancelled.')
  for (const ask of stepsOf[situation.event]) {
    const due = ask(situation)
    if (due) return due
  }
  return step('done')
}
