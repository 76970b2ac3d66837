import type { MessageType } from '../messages/messages.ts'
import type { Person } from './person-store.ts'
import type { ProofPurpose } from './proofs.ts'
import { allows, type SignInSettings } from './settings.ts'

/** What a code is sent for: each purpose of proofs is one. */
export type CodePurpose = ProofPurpose

interface CodePurposeRow {
  message: MessageType & ('SignIn' | 'Register' | 'ForgotPassword' | 'BindNewIdentifier' | 'MfaVerification')
  /** Whose proof it is: of whom the address names, of who is known here already, or of nobody yet. */
  owner: 'named' | 'here' | 'nobody'
  /** Where it goes: to the address that is named, which somebody is to get if it is new, or to the person's own one. */
  to: 'named' | 'new' | 'own'
  /** What is sent there, whoever asks for it; `notice`: that the address has an account. Default: the code. */
  sends?(person: Person | undefined, settings: SignInSettings): 'code' | 'notice' | 'nothing'
}

export const codePurposes: Readonly<Record<CodePurpose, CodePurposeRow>> = {
  sign_in: {
    ...{ message: 'SignIn', owner: 'named', to: 'named' },
    sends: (person, settings) => (person || allows(settings, 'Register') ? 'code' : 'nothing'),
  },
  reset: {
    ...{ message: 'ForgotPassword', owner: 'named', to: 'named' },
    sends: (person) => (person ? 'code' : 'nothing'),
  },
  register: {
    ...{ message: 'Register', owner: 'nobody', to: 'new' },
    sends: (person) => (person ? 'notice' : 'code'),
  },
  bind: { message: 'BindNewIdentifier', owner: 'here', to: 'new' },
  mfa: { message: 'MfaVerification', owner: 'here', to: 'own' },
  // A mailbox that anybody names would be no test, and a way to send mail to strangers.
  captcha: { message: 'MfaVerification', owner: 'here', to: 'own' },
}

/** Whose proof a code is. `named`: whom the address names. `here`: whom the interaction is about. */
export const codeOwner = (
  purpose: CodePurpose,
  people: { named?: { id: string } | undefined; here: { id: string } | undefined },
): string | null => {
  const { owner } = codePurposes[purpose]
  return (owner === 'nobody' ? undefined : people[owner]?.id) ?? null
}
