import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import type { InteractionState } from '../../interaction/interaction-state.ts'
import { findInteraction } from '../../interaction/interaction-store.ts'
import { redirectAnswer } from './answers.ts'
import { isIdentified } from './guards.ts'
import { type Call, type CallResult, experienceRoute } from './route.ts'
import { problemOfStep, stepProblems } from './step-problems.ts'

/** Where the browser goes from here: it is shown what is left, or goes back to the client. */
export const resumePath = (interactionId: string): string => `/oidc/auth/${interactionId}`

/** What was read may be overtaken by another call; then it is read again. */
const tries = 3

const takenProblems = {
  username: 'user.username_already_in_use',
  email: 'user.email_already_in_use',
  phone: 'user.phone_already_in_use',
  passkey: 'user.passkey_already_in_use',
  totp: 'user.totp_already_in_use',
  federated: 'user.identity_already_in_use',
} as const

const submit = async (call: Call, decision: InteractionState): Promise<CallResult | undefined> => {
  const { query, operations, interaction, visitor, request, baseUrl } = call
  const redirectTo = `${baseUrl}${resumePath(interaction.id)}`
  const proceeded = await operations.finish.proceed(interaction.id, visitor, request, decision)
  switch (proceeded.kind) {
    case 'redirect':
      return { body: { redirectTo }, setCookies: proceeded.redirect.setCookies }
    case 'reset':
      return {}
    case 'taken':
      throw problem(takenProblems[proceeded.fields[0] ?? 'username'])
    case 'over':
    case 'client_gone':
      throw problem('session.not_found')
    case 'page': {
      const now = await findInteraction(query, interaction.id)
      if (!now) throw problem('session.not_found')
      const standing = await operations.standingOf(query, now, visitor)
      const due = await problemOfStep(call, standing, now)
      if (due) throw due
      // What is left is asked by pages of ours.
      return standing.step.step === 'done' ? undefined : { body: { redirectTo } }
    }
  }
}

export const submitRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/submit',
    operationId: 'submitInteraction',
    summary: 'Does all of it in one transaction. A reset of a password answers without a body.',
    body: z.object({ agreesToTerms: z.literal(true).optional(), keepSignedIn: z.boolean().optional() }),
    status: 200,
    response: redirectAnswer,
    problems: [...stepProblems, ...Object.values(takenProblems)],
    takesFinished: true,
    async handle(call) {
      const { interaction, body } = call
      // Whoever has a session may have nothing to prove; whoever proves something says for whom.
      const isSaid = isIdentified(interaction) || (interaction.event === 'SignIn' && interaction.proofs.length === 0)
      if (interaction.isOpen && !isSaid) throw problem('session.identifier_not_found')
      const decision = {
        ...(body.agreesToTerms && { terms: true }),
        ...(body.keepSignedIn !== undefined && { keep: body.keepSignedIn }),
      }
      for (let left = tries; left > 0; left--) {
        const result = await submit(call, decision)
        if (result) return result
      }
      throw problem('server.unavailable', { headers: { 'Retry-After': '1' } })
    },
  }),
]
