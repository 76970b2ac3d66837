import { z } from 'zod'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { FederationError } from '../../connectors/federation.ts'
import { callbackPath, type FederationPurpose } from '../../interaction/federated-proof.ts'
import { findPendingProof } from '../../interaction/proof-store.ts'
import { authorizationUriAnswer, connectorIdsAnswer, verification } from './answers.ts'
import { guardProblems, isIdentified, requireEvent, requireProven } from './guards.ts'
import { type Call, experienceRoute } from './route.ts'

/** Identity providers: social ones, and those of enterprises. The page of one's own gets their answer and brings it. */

const params = z.object({ connectorId: z.string().max(128) })

/** Whoever has been identified gets one more identity. */
const purposeOf = async (call: Call): Promise<FederationPurpose> => {
  const { interaction } = call
  if (interaction.event === 'Register') return 'register'
  if (!isIdentified(interaction)) return 'sign_in'
  await requireProven(call)
  return 'bind'
}

/** A page that may sign people in gets the answer; nobody else does. */
const requireOwnPage = async ({ baseUrl, pageOrigin }: Call, connectorId: string, redirectUri: string) => {
  const { origin, hash, username } = new URL(redirectUri)
  const isOurs = redirectUri === `${baseUrl}${callbackPath(connectorId)}`
  if (hash !== '' || username !== '' || !(isOurs || origin === new URL(baseUrl).origin || origin === pageOrigin)) {
    throw problem('guard.invalid_input', { detail: 'redirectUri: must be an address of the page that asks' })
  }
}

const problems: Readonly<Record<FederationError['reason'], ProblemCode>> = {
  connector_not_found: 'entity.not_found',
  denied: 'session.connector_refused',
  provider_error: 'session.connector_refused',
  invalid_response: 'session.connector_answer_invalid',
  invalid_id_token: 'session.connector_answer_invalid',
  subject_mismatch: 'session.connector_answer_invalid',
  unavailable: 'session.connector_unavailable',
  target_not_allowed: 'session.connector_unavailable',
  misconfigured: 'session.connector_unavailable',
}

const uriBody = z.object({
  /** Made and checked by the page. */
  state: z.string().min(1).max(1_024),
  redirectUri: z.url({ protocol: /^https?$/ }).max(2_048),
})

const answerBody = z.object({
  connectorData: z.record(z.string(), z.unknown()).describe('The parameters with which the browser came back.'),
  verificationId: z.string().max(64).optional().describe('Default: the newest that waits.'),
})

const begin = async (call: Call<z.output<typeof uriBody>>) => {
  const { operations, interaction, visitor, body, params, count } = call
  const { connectorId = '' } = params
  requireEvent(call, 'SignIn', 'Register')
  await requireOwnPage(call, connectorId, body.redirectUri)
  const purpose = await purposeOf(call)
  const { loginHint } = interaction.request
  const begun = await operations.federated.begin(interaction, visitor, { connectorId, purpose, loginHint, page: body })
  switch (begun.outcome) {
    case 'begun':
      return { body: { authorizationUri: begun.url, verificationId: begun.proofId } }
    case 'refused':
      throw problem('entity.not_found')
    case 'too_many_requests':
      throw problem('rate_limit.exceeded', { headers: { 'Retry-After': '600' } })
    case 'over':
      throw problem('session.not_found')
    case 'unavailable':
      count('federated', begun.outcome)
      throw problem('session.connector_unavailable')
  }
}

/** The one that the page names, or the newest that waits. */
const waitingFor = async ({ query, interaction, body }: Call<z.output<typeof answerBody>>) => {
  if (body.verificationId !== undefined) return body.verificationId
  for (const purpose of ['sign_in', 'register', 'bind'] as const) {
    const waiting = await findPendingProof(query, interaction.id, 'federated', purpose)
    if (waiting) return waiting.id
  }
  throw problem('session.connector_session_not_found')
}

const verify = async (call: Call<z.output<typeof answerBody>>) => {
  const { operations, interaction, visitor, body, params, count } = call
  requireEvent(call, 'SignIn', 'Register')
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(body.connectorData)) {
    // The address is that of the request; what is no parameter is none of the provider's.
    if (name !== 'redirectUri' && typeof value === 'string') parameters.append(name, value)
  }
  const answer = { connectorId: params['connectorId'] ?? '', proofId: await waitingFor(call), parameters }
  const verified = await operations.federated.verify(interaction, visitor, answer)
  count('federated', verified.outcome)
  switch (verified.outcome) {
    case 'verified':
      return { body: { verificationId: verified.proofId } }
    case 'not_found':
      throw problem('session.connector_session_not_found')
    case 'failed':
      throw problem(problems[verified.reason])
    case 'over':
      throw problem('session.not_found')
  }
}

const kinds = [
  { kind: 'social', name: 'Social', what: 'a social identity provider' },
  { kind: 'sso', name: 'Sso', what: 'the identity provider of an enterprise' },
] as const

export const federationRoutes = [
  ...kinds.flatMap(({ kind, name, what }) => [
    experienceRoute({
      method: 'POST',
      path: `/verification/${kind}/:connectorId/authorization-uri`,
      operationId: `create${name}AuthorizationUri`,
      summary: `Begins to prove who somebody is by ${what}.`,
      params,
      body: uriBody,
      status: 200,
      response: authorizationUriAnswer,
      problems: [
        ...guardProblems.event,
        ...guardProblems.proven,
        'guard.invalid_input',
        'entity.not_found',
        'session.connector_unavailable',
      ],
      handle: begin,
    }),
    experienceRoute({
      method: 'POST',
      path: `/verification/${kind}/:connectorId/verify`,
      operationId: `verify${name}`,
      summary: `Takes the answer of ${what}.`,
      params,
      body: answerBody,
      status: 200,
      response: verification,
      problems: [
        ...guardProblems.event,
        'session.connector_session_not_found',
        'entity.not_found',
        'session.connector_refused',
        'session.connector_answer_invalid',
        'session.connector_unavailable',
      ],
      handle: verify,
    }),
  ]),
  experienceRoute({
    method: 'GET',
    path: '/sso-connectors',
    operationId: 'listSsoConnectors',
    summary: 'Tells which enterprise connector the people of an address sign in by: by its domain alone.',
    body: z.object({ email: z.email().max(256) }),
    status: 200,
    response: connectorIdsAnswer,
    async handle({ operations, body }) {
      const enterprise = await operations.federated.enterpriseOf(body.email)
      return { body: { connectorIds: enterprise ? [enterprise.id] : [] } }
    },
  }),
]
