import { z } from 'zod'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import { findTaken } from '../../directory/people/person-store.ts'
import { readPhone } from '../../directory/users/phone.ts'
import { findOfferedLink } from '../../interaction/federation-store.ts'
import { findHolder } from '../../interaction/identity-store.ts'
import { keepDecision } from '../../interaction/interaction-changes-store.ts'
import { findWaiting } from '../../interaction/proof-store.ts'
import { type FederatedIdentity, identifies, type Proof } from '../../interaction/proofs.ts'
import { provenAddress } from '../../interaction/required-profile.ts'
import { isEnabled, registrationFactors } from '../../interaction/settings.ts'
import { newPerson } from '../../interaction/situation.ts'
import { guardProblems, requireAllowed } from './guards.ts'
import { type Call, experienceRoute } from './route.ts'
import { problemOfStep, stepProblems } from './step-problems.ts'

/** Of `verificationOf` and `requireFree`. */
export const verificationProblems: readonly ProblemCode[] = [
  'session.verification_failed',
  'session.verification_session_not_found',
]
export const takenProblems: readonly ProblemCode[] = [
  'user.username_already_in_use',
  'user.email_already_in_use',
  'user.phone_already_in_use',
  'user.identity_already_in_use',
]

/** The verification that a body names. Throws 404 for one that is not there, 400 for one that was not completed. */
export const verificationOf = async ({ query, interaction }: Call, id: string | undefined): Promise<Proof> => {
  const proof = interaction.proofs.find((known) => known.id === id)
  if (proof) return proof
  const isWaiting = id !== undefined && (await findWaiting(query, interaction.id, id)) !== undefined
  throw problem(isWaiting ? 'session.verification_failed' : 'session.verification_session_not_found')
}

/** People of an enterprise sign in there, whatever they proved here. */
const refuseEnterprise = async ({ operations }: Call, { kind, data: { identifier } }: Proof): Promise<void> => {
  if (kind === 'federated' || kind === 'one_time_token' || identifier?.type !== 'email') return
  const enterprise = await operations.federated.enterpriseOf(identifier.value)
  if (enterprise)
    throw problem('session.sso_enabled', {
      data: { ssoConnectors: [{ id: enterprise.id, connectorName: enterprise.name }] },
    })
}

const unknownIdentity = ({ kind }: Pick<FederatedIdentity, 'kind'>, data: Record<string, unknown> = {}) =>
  problem(kind === 'sso' ? 'user.sso_identity_not_exist' : 'user.identity_not_exist', { data })

/**
 * An identity whose address somebody has is nobody's yet, whatever `linkSocialIdentity` says: it becomes theirs with
 * the submission, when they have proven the account in another way meanwhile.
 */
const refuseUnlinked = async ({
  query,
  interaction,
  body: { verificationId },
}: Call<{ verificationId?: string | undefined }>): Promise<void> => {
  if (verificationId === undefined || interaction.proofs.some(({ id }) => id === verificationId)) return
  const offered = await findOfferedLink(query, interaction.id, verificationId)
  if (offered) throw unknownIdentity(offered, { relatedUser: { type: 'email', value: offered.email } })
}

/** Whose the verification is. Told only to whoever has completed it. */
const identify = async (call: Call<{ verificationId?: string | undefined }>): Promise<string> => {
  const { interaction, settings, body } = call
  await refuseUnlinked(call)
  const proof = await verificationOf(call, body.verificationId)
  const isReset = interaction.event === 'ForgotPassword'
  if (isReset ? proof.purpose !== 'reset' : !identifies(proof)) throw problem('session.verification_failed')
  if (!isEnabled(settings, proof)) throw problem('user.sign_in_method_not_enabled')
  await refuseEnterprise(call, proof)
  if (proof.userId === null)
    throw proof.data.federated ? unknownIdentity(proof.data.federated) : problem('user.user_not_exist')
  const { identified } = interaction.state
  if (identified !== undefined && identified !== proof.userId) throw problem('session.identity_conflict')
  return proof.userId
}

/** Somebody else has what somebody new wants to have. Addresses only once they are proven. */
export const requireFree = async (call: Call): Promise<void> => {
  const { query, interaction } = call
  const { staged, proofs } = interaction
  const number = provenAddress(proofs, 'phone')
  const taken = await findTaken(query, {
    username: staged.username,
    primaryEmail: provenAddress(proofs, 'email'),
    phone: number === undefined ? undefined : readPhone(number),
  })
  for (const name of ['username', 'email', 'phone'] as const) {
    if (taken[name]) throw problem(`user.${name}_already_in_use`)
  }
  for (const identity of proofs.flatMap(({ data }) => data.federated ?? [])) {
    const holder = await findHolder(query, identity)
    if (holder !== undefined && holder !== interaction.person?.id) throw problem('user.identity_already_in_use')
  }
}

/** Everything is there that the settings ask of somebody new. The user comes to be when it is submitted. */
const register = async (call: Call<{ verificationId?: string | undefined }>): Promise<string> => {
  const { interaction, settings, body } = call
  if (body.verificationId !== undefined) {
    const isName = body.verificationId === interaction.staged.identityId
    const proof = isName ? undefined : await verificationOf(call, body.verificationId)
    if (proof && proof.purpose !== 'register') throw problem('session.verification_failed')
    const isWanted = proof
      ? proof.kind === 'one_time_token' ||
        proof.kind === 'federated' ||
        registrationFactors(settings).includes(proof.kind)
      : settings.signUp.identifiers.includes('username')
    if (!isWanted) throw problem('user.sign_in_method_not_enabled')
    if (proof) await refuseEnterprise(call, proof)
  }
  await requireFree(call)
  const standing = await call.standing()
  const { step } = standing
  if (step.step === 'register') {
    throw problem('user.missing_profile', { data: { missingProfile: step.options.missing ?? [] } })
  }
  if (step.step === 'blocked') throw (await problemOfStep(call, standing))!
  return newPerson
}

export const identificationRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/identification',
    operationId: 'identifyInteraction',
    summary: 'Says for whom it was proven. Somebody new comes to be with the submission.',
    body: z.object({
      verificationId: z.string().max(64).optional(),
      linkSocialIdentity: z.boolean().optional().describe('Links nothing: the settings do, or a proof of the account.'),
    }),
    status: 204,
    mayCreate: true,
    problems: [
      ...guardProblems.allowed,
      ...verificationProblems,
      ...takenProblems,
      ...stepProblems,
      'user.sign_in_method_not_enabled',
      'user.user_not_exist',
      'user.identity_not_exist',
      'user.sso_identity_not_exist',
      'session.sso_enabled',
      'session.identity_conflict',
    ],
    async handle(call) {
      const { query, interaction } = call
      const isNew = interaction.event === 'Register'
      requireAllowed(call)
      const identified = isNew ? await register(call) : await identify(call)
      // Pages of one's own run scripts, and say themselves what their browsers cannot do.
      await keepDecision(query, interaction.id, { identified, makesPasskeys: true })
      if (isNew) return { status: 201 }
    },
  }),
]
