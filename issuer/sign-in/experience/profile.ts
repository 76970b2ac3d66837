import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { password, userProfile } from '../../directory/users/user.ts'
import { codeKindOf } from '../../interaction/settings.ts'
import { guardProblems, isIdentified, requireAllowed, requireEvent, requireProven } from './guards.ts'
import { requireFree, takenProblems, verificationOf, verificationProblems } from './identification.ts'
import { passwordProblems, rejected } from './password-problems.ts'
import { type Call, experienceRoute } from './route.ts'

/** What somebody is to become. It waits for the interaction to be submitted. */

const verificationId = z.string().max(64)
const text = z.string().min(1).max(128)

const profileBody = z.discriminatedUnion('type', [
  z.object({ type: z.literal('username'), value: text }),
  z.object({ type: z.literal('password'), value: password }),
  z.object({ type: z.literal('email'), verificationId }),
  z.object({ type: z.literal('phone'), verificationId }),
  z.object({ type: z.literal('social'), verificationId }),
  z.object({
    type: z.literal('extraProfile'),
    values: z.strictObject({
      name: text.optional(),
      avatar: z
        .url({ protocol: /^https?$/ })
        .max(2_048)
        .optional(),
      ...userProfile.shape,
    }),
  }),
])
type ProfileBody = z.output<typeof profileBody>
type Of<Type extends ProfileBody['type']> = Call<Extract<ProfileBody, { type: Type }>>

/** Before anybody adds something: it is an account of theirs, or a new one. Answers whether the password is due. */
const requireTurn = async (call: Call): Promise<{ isPasswordDue: boolean }> => {
  if (call.interaction.event === 'ForgotPassword') throw problem('session.not_supported_for_forgot_password')
  requireAllowed(call)
  if (call.interaction.event === 'Register') return { isPasswordDue: true }
  return { isPasswordDue: (await requireProven(call)).step.step === 'new_password' }
}

const addPassword = async ({ operations, interaction }: Call, value: string) => {
  const staged = await operations.staging.password(interaction, value)
  if (staged.outcome !== 'staged') throw rejected(staged)
}

/** An address that was proven here is the person's when it is submitted. */
const addAddress = async (call: Of<'email'> | Of<'phone'>) => {
  const { type, verificationId: id } = call.body
  const proof = await verificationOf(call, id)
  const isOfType = proof.kind === codeKindOf(type) || (proof.kind === 'one_time_token' && type === 'email')
  if (!isOfType || (proof.purpose !== 'register' && proof.purpose !== 'bind')) {
    throw problem('session.verification_failed')
  }
  await requireFree(call)
}

const adding: { [Type in ProfileBody['type']]: (call: Of<Type>, turn: { isPasswordDue: boolean }) => Promise<void> } = {
  async username({ operations, interaction, visitor, body }) {
    if (interaction.person?.hasUsername) throw problem('user.username_exists_in_profile')
    const staged = await operations.staging.username(interaction, body.value, visitor)
    if (staged.outcome !== 'staged') throw rejected({ outcome: staged.outcome })
  },
  async password(call, { isPasswordDue }) {
    if (call.interaction.person?.hasPassword && !isPasswordDue) throw problem('user.password_exists_in_profile')
    await addPassword(call, call.body.value)
  },
  email: addAddress,
  async social(call) {
    const proof = await verificationOf(call, call.body.verificationId)
    if (proof.kind !== 'federated' || proof.purpose === 'sign_in') throw problem('session.verification_failed')
    await requireFree(call)
  },
  phone: addAddress,
  async extraProfile(call) {
    requireEvent(call, 'Register')
    const { operations, interaction, body } = call
    if (!(await operations.staging.profile(interaction, body.values))) throw problem('session.not_found')
  },
}

export const profileRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/profile',
    operationId: 'addToProfile',
    summary: 'Adds a user name, a password, an address that was proven, or what somebody new tells of themselves.',
    body: profileBody,
    status: 204,
    problems: [
      'session.not_supported_for_forgot_password',
      ...guardProblems.event,
      ...guardProblems.allowed,
      ...guardProblems.proven,
      ...verificationProblems,
      ...takenProblems,
      ...passwordProblems,
      'user.username_exists_in_profile',
      'user.password_exists_in_profile',
    ],
    hashes: true,
    async handle(call) {
      const turn = await requireTurn(call)
      await adding[call.body.type](call as never, turn)
    },
  }),

  experienceRoute({
    method: 'PUT',
    path: '/profile/password',
    operationId: 'resetPassword',
    summary: 'Sets another password, to reset the one that was forgotten.',
    body: z.object({ password }),
    status: 204,
    problems: [...guardProblems.event, 'session.identifier_not_found', ...passwordProblems],
    hashes: true,
    async handle(call) {
      requireEvent(call, 'ForgotPassword')
      if (!isIdentified(call.interaction)) throw problem('session.identifier_not_found')
      await addPassword(call, call.body.password)
    },
  }),
]
