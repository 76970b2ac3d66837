import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { provenBy } from './attempt-problems.ts'
import { requireEvent } from './guards.ts'
import { addressOf, emailIdentifier } from './identifier-body.ts'
import { experienceRoute } from './route.ts'

/** Tokens that whoever runs the issuer has sent to an address. */
export const oneTimeTokenRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/one-time-token/verify',
    body: z.object({ identifier: emailIdentifier, token: z.string().min(1).max(256) }),
    status: 200,
    async handle(call) {
      const { operations, interaction, visitor, body, request, count } = call
      requireEvent(call, 'SignIn', 'Register')
      const input = { identifier: addressOf(body.identifier), token: body.token }
      const attempt = await operations.oneTimeTokens.prove(interaction, visitor, input, request)
      count('one_time_token', attempt.outcome)
      const wrong = () => problem(attempt.refusal ?? 'one_time_token.token_not_found')
      return { body: { verificationId: provenBy(attempt, wrong) } }
    },
  }),
]
