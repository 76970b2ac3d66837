import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { interactionEvents } from '../../interaction/interaction-state.ts'
import { type Proof, recordTypeOf } from '../../interaction/proofs.ts'
import { provenAddress } from '../../interaction/required-profile.ts'
import { interactionAnswer } from './answers.ts'
import { guardProblems, isIdentified, requireAllowed } from './guards.ts'
import { experienceRoute } from './route.ts'

const interactionEvent = z.enum(interactionEvents)

/** What a verification may tell of itself. */
const toRecord = ({ id, kind, purpose, data }: Proof) => ({
  id,
  type: recordTypeOf({ kind, data }),
  verified: true,
  purpose,
  ...(data.identifier && { identifier: data.identifier }),
})

/** The interaction itself: what it is for, what is known, what is due. */
export const interactionRoutes = [
  experienceRoute({
    method: 'PUT',
    path: '',
    operationId: 'beginInteraction',
    summary: 'Begins anew: nothing that was proven counts any more.',
    body: z.object({ interactionEvent, captchaToken: z.string().max(4_096).optional() }),
    status: 204,
    problems: ['session.captcha_failed'],
    async handle({ operations, interaction, visitor, body: { interactionEvent: event, captchaToken } }) {
      await operations.staging.begin(interaction, event, { isAnew: true })
      if (captchaToken === undefined) return
      const outcome = await operations.captchas.answer({ ...interaction, event }, visitor, captchaToken)
      if (outcome === 'unavailable') throw problem('server.unavailable')
      if (outcome !== 'passed' && outcome !== 'skipped') throw problem('session.captcha_failed')
    },
  }),

  experienceRoute({
    method: 'PUT',
    path: '/interaction-event',
    operationId: 'setInteractionEvent',
    summary: 'Says that it is for something else.',
    body: z.object({ interactionEvent }),
    status: 204,
    problems: [...guardProblems.allowed, 'session.not_supported_for_forgot_password'],
    async handle(call) {
      const { operations, interaction, body } = call
      const { interactionEvent: event } = body
      requireAllowed(call, event)
      if (event === interaction.event) return
      if ([event, interaction.event].includes('ForgotPassword')) {
        throw problem('session.not_supported_for_forgot_password')
      }
      await operations.staging.begin(interaction, event)
    },
  }),

  experienceRoute({
    method: 'GET',
    path: '/interaction',
    operationId: 'getInteraction',
    summary: 'Reads what is known and what is due.',
    status: 200,
    response: interactionAnswer,
    async handle({ operations, interaction, visitor, standing }) {
      const { event, person, staged, proofs, state } = interaction
      const { step } = await standing()
      const email = provenAddress(proofs, 'email')
      const phone = provenAddress(proofs, 'phone')
      const isTestDue = await operations.captchas.isDue(interaction, visitor)
      const bound = proofs.filter(({ purpose }) => purpose === 'bind').map(recordTypeOf)
      return {
        body: {
          interactionEvent: event,
          ...(isIdentified(interaction) && person && { userId: person.id }),
          profile: {
            ...(staged.username !== undefined && { username: staged.username }),
            ...(email !== undefined && { primaryEmail: email }),
            ...(phone !== undefined && { primaryPhone: phone }),
            hasPassword: staged.password !== undefined,
          },
          mfa: { added: bound, mfaSkipped: state.skipsMfa === true, passkeySkipped: state.skipsPasskey === true },
          verificationRecords: proofs.map(toRecord),
          captcha: {
            verified: state.captcha === true,
            ...(isTestDue && { challenge: operations.captchas.challenge(interaction) }),
          },
          next: step,
        },
      }
    },
  }),
]
