import type { Calls } from '../../generated/api.ts'

export type Experience = Calls['getSignInExperience']['answer']
type Method = Experience['signIn']['methods'][number]

export const identifiers = { username: 'User name', email: 'E-mail address', phone: 'Telephone number' } as const
type Identifier = keyof typeof identifiers

/** What proves who somebody is, as one choice for each identifier. */
export const proofs = {
  off: 'Not used',
  password: 'Password',
  code: 'Code that is sent there',
  'password or code': 'Password, or a code instead',
  'code or password': 'Code, or a password instead',
} as const
type Proof = keyof typeof proofs

const proofOf = (method: Method | undefined): Proof => {
  if (!method) return 'off'
  if (!method.verificationCode) return 'password'
  if (!method.password) return 'code'
  return method.isPasswordPrimary ? 'password or code' : 'code or password'
}

const methodOf = (identifier: Identifier, proof: Proof): Method => ({
  identifier,
  password: proof !== 'code',
  verificationCode: proof !== 'password',
  isPasswordPrimary: proof.startsWith('password'),
})

const names = Object.keys(identifiers) as Identifier[]
const allRecovery: Experience['forgotPasswordMethods'] = ['EmailVerificationCode', 'PhoneVerificationCode']

/** The record as its form has it: `methods.email` is one choice, and what is unset is all that there is. */
export const toForm = (experience: Experience) => ({
  ...experience,
  methods: Object.fromEntries(
    names.map((name) => [name, proofOf(experience.signIn.methods.find(({ identifier }) => identifier === name))]),
  ),
  forgotPasswordMethods: experience.forgotPasswordMethods ?? allRecovery,
})

/** And back. */
export const toBody = ({ methods, ...change }: Record<string, unknown>): Record<string, unknown> => {
  if (methods === undefined) return change
  const chosen = methods as Record<Identifier, Proof>
  return {
    ...change,
    signIn: { methods: names.flatMap((name) => (chosen[name] === 'off' ? [] : [methodOf(name, chosen[name])])) },
  }
}
