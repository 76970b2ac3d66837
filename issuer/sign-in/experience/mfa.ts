import { z } from 'zod'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import { type MfaFactor, mfaFactors } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { keepDecision } from '../../interaction/interaction-changes-store.ts'
import { secondFactorNames, secondFactors } from '../../interaction/person-facts.ts'
import { guardProblems, requireEnrolment, requireFactor, requirePasskeys } from './guards.ts'
import { verificationOf, verificationProblems } from './identification.ts'
import { type Call, type ExperienceRoute, experienceRoute } from './route.ts'

/** Second factors that somebody gets, or does not want now. */

const verificationId = z.string().max(64)

/** The person has seen the codes. They are worth nothing alone: who loses the other factor is not helped by paper. */
const keepBackupCodes = async (call: Call, id: string): Promise<void> => {
  const { operations, interaction, settings } = call
  const { person, proofs } = interaction
  const hasOther = secondFactorNames.some(
    (name) =>
      name !== 'BackupCode' &&
      settings.mfa.factors.includes(name) &&
      ((person && secondFactors[name].isHeld(person)) ||
        proofs.some(
          ({ kind, purpose }) => kind === secondFactors[name].proof && (purpose === 'bind' || purpose === 'register'),
        )),
  )
  if (!hasOther) throw problem('session.mfa.backup_code_can_not_be_alone')
  if (proofs.some((proof) => proof.id === id && proof.kind === 'backup_code')) return
  if (!(await operations.enrolment.keepBackupCodes(interaction, id))) {
    throw problem('session.verification_session_not_found')
  }
}

const bind = async (call: Call, factor: MfaFactor, id: string): Promise<void> => {
  if (factor === 'WebAuthn') requirePasskeys(call)
  else requireFactor(call, factor)
  await requireEnrolment(call)
  if (factor === 'BackupCode') return keepBackupCodes(call, id)
  if (factor === 'Totp' && call.interaction.person?.hasTotp) throw problem('user.totp_already_in_use')
  const proof = await verificationOf(call, id)
  const isNew = proof.purpose === 'bind' || (proof.purpose === 'register' && proof.kind !== 'one_time_token')
  if (!isNew || proof.kind !== secondFactors[factor].proof) throw problem('session.verification_failed')
}

/** Whether the person may say whether they want one. */
const requireChoice = async (call: Call): Promise<void> => {
  const { mfa } = call.settings
  await requireEnrolment(call)
  const { step } = await call.standing()
  const isDemanded = step.step === 'enrol' && step.options.isSkippable !== true
  if (mfa.policy === 'Mandatory' || mfa.policy === 'NoPrompt' || isDemanded) {
    throw problem('session.mfa.mfa_policy_not_user_controlled')
  }
}

type Described = Pick<ExperienceRoute, 'operationId' | 'summary'>

const choosing = (path: string, skipsMfa: boolean, described: Described) =>
  experienceRoute({
    ...{ method: 'POST', path, ...described },
    status: 204,
    problems: [...guardProblems.enrolment, 'session.mfa.mfa_policy_not_user_controlled'],
    async handle(call) {
      await requireChoice(call)
      await keepDecision(call.query, call.interaction.id, { skipsMfa })
    },
  })

const bindProblems: readonly ProblemCode[] = [
  ...guardProblems.factor,
  ...guardProblems.enrolment,
  ...verificationProblems,
  'user.totp_already_in_use',
  'session.mfa.backup_code_can_not_be_alone',
]

export const mfaRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/profile/mfa',
    operationId: 'bindFactor',
    summary: 'Gives the person the factor that was proven.',
    body: z.object({ type: z.enum(mfaFactors), verificationId }),
    status: 204,
    problems: bindProblems,
    handle: (call) => bind(call, call.body.type, call.body.verificationId),
  }),
  experienceRoute({
    method: 'POST',
    path: '/profile/mfa/passkey',
    operationId: 'bindPasskey',
    summary: 'Gives the person the passkey.',
    body: z.object({ verificationId }),
    status: 204,
    problems: bindProblems,
    handle: (call) => bind(call, 'WebAuthn', call.body.verificationId),
  }),
  choosing('/profile/mfa/mfa-enabled', false, {
    operationId: 'enableMfa',
    summary: 'Says that the person wants a second factor.',
  }),
  choosing('/profile/mfa/mfa-skipped', true, {
    operationId: 'skipMfa',
    summary: 'Puts a second factor off, where the settings leave that to the person.',
  }),
  // What existing clients send when a suggestion that we do not make is put off.
  experienceRoute({
    method: 'POST',
    path: '/profile/mfa/mfa-suggestion-skipped',
    operationId: 'skipMfaSuggestion',
    summary: 'Does nothing: no such suggestion is made here.',
    status: 204,
    problems: guardProblems.enrolment,
    handle: async (call) => void (await requireEnrolment(call)),
  }),
  experienceRoute({
    method: 'POST',
    path: '/profile/mfa/passkey-skipped',
    operationId: 'skipPasskeySuggestion',
    summary: 'Puts the offer of a passkey off.',
    status: 204,
    problems: guardProblems.enrolment,
    async handle(call) {
      await requireEnrolment(call)
      await keepDecision(call.query, call.interaction.id, { skipsPasskey: true })
    },
  }),
]
