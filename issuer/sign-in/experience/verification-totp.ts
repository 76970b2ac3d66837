import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { totpSecretAnswer, verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import { guardProblems, requireEnrolment, requireFactor, requirePerson } from './guards.ts'
import { experienceRoute } from './route.ts'

const wrong = () => problem('session.mfa.invalid_totp_code')

/** Codes of authenticator apps, and secrets for new ones. */
export const totpRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/totp/secret',
    operationId: 'createTotpSecret',
    summary: 'Makes the secret of a new authenticator app.',
    status: 200,
    response: totpSecretAnswer,
    problems: [...guardProblems.factor, ...guardProblems.enrolment, 'user.totp_already_in_use'],
    async handle(call) {
      const { query, operations, interaction, settings, baseUrl } = call
      requireFactor(call, 'Totp')
      await requireEnrolment(call)
      const { person, staged } = interaction
      if (person?.hasTotp) throw problem('user.totp_already_in_use')
      const account = person ? (await findAccount(query, person.id))?.identifier : staged.username
      const about = { issuer: settings.displayName ?? new URL(baseUrl).hostname, account: account ?? '' }
      const made = await operations.enrolment.totp(interaction, about, { anew: true })
      if (!made) throw problem('session.not_found')
      return { body: { verificationId: made.proofId, secret: made.secret, secretQrCode: made.dataUrl } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/totp/verify',
    operationId: 'verifyTotp',
    summary: 'Proves a second factor by a code; with `verificationId`, confirms a new authenticator app.',
    body: z.object({ code: z.string().min(1).max(32), verificationId: z.string().max(64).optional() }),
    status: 200,
    response: verification,
    problems: [
      ...guardProblems.factor,
      ...guardProblems.person,
      ...guardProblems.enrolment,
      ...attemptProblems,
      'session.mfa.invalid_totp_code',
      'session.verification_failed',
    ],
    async handle(call) {
      const { operations, interaction, visitor, body, request, count } = call
      requireFactor(call, 'Totp')
      if (body.verificationId !== undefined) {
        await requireEnrolment(call)
        if (interaction.proofs.some(({ id }) => id === body.verificationId))
          throw problem('session.verification_failed')
        const answer = { proofId: body.verificationId, code: body.code }
        if (!(await operations.enrolment.confirmTotp(interaction, answer))) throw wrong()
        return { body: { verificationId: body.verificationId } }
      }
      requirePerson(call)
      const input = { kind: 'totp', code: body.code } as const
      const attempt = await operations.secondFactors.prove(interaction, visitor, input, request)
      count('totp', attempt.outcome)
      return { body: { verificationId: provenBy(attempt, wrong) } }
    },
  }),
]
