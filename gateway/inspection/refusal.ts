import { z } from 'zod'
import { type ProblemCode, problems } from '../refusals/problems.ts'
import type { DecisionRecord, Why } from './decision-answers.ts'
import type { stages } from './explanation.ts'
import type { RecordedInput } from './recorded-input.ts'

type Stage = (typeof stages)[number]

/** Of a code that several stages refuse with: before a route is known, before the policy has decided, and after. */
interface Stages {
  unrouted: Stage
  before: Stage
  after: Stage
}

/** Which stage refuses with a code. */
const stageOf: Readonly<Record<ProblemCode, Stage | Stages>> = {
  invalid_request: { unrouted: 'request', before: 'route', after: 'upstream' },
  request_timeout: { unrouted: 'request', before: 'policy', after: 'upstream' },
  uri_too_long: 'request',
  header_fields_too_large: 'request',
  not_found: { unrouted: 'route', before: 'route', after: 'upstream' },
  token_missing: 'token',
  invalid_token: 'token',
  keys_unavailable: 'token',
  issuer_unavailable: 'token',
  revocations_unavailable: 'token',
  invalid_dpop_proof: 'token',
  use_dpop_nonce: 'token',
  dpop_unavailable: 'token',
  insufficient_user_authentication: 'sign-in',
  rate_limited: 'rate-limit',
  limits_unavailable: 'rate-limit',
  content_too_large: { unrouted: 'request', before: 'policy', after: 'upstream' },
  unsupported_media_type: 'policy',
  body_unavailable: 'policy',
  insufficient_scope: 'policy',
  impersonation_denied: 'policy',
  policy_denied: 'policy',
  policy_error: 'policy',
  policy_unavailable: 'policy',
  // Of the inspection API only.
  rules_changed: 'policy',
  rules_refused: 'policy',
  origin_not_allowed: 'upstream',
  upgrade_required: 'upstream',
  client_too_slow: 'upstream',
  upstream_unavailable: 'upstream',
  upstream_protocol_error: 'upstream',
  upstream_timeout: 'upstream',
  'server.error': 'gateway',
  'server.unavailable': { unrouted: 'gateway', before: 'policy', after: 'upstream' },
}

/** Details of bodies that the policy was to see (`json-body.ts`). */
const aboutBody = /^The request body /

const stageOfRefusal = (code: string, { route, detail }: DecisionRecord, { reason }: RecordedResult): Stage => {
  if (!Object.hasOwn(stageOf, code)) return 'gateway'
  const stage = stageOf[code as ProblemCode]
  if (typeof stage === 'string') return stage
  if (route === undefined) return stage.unrouted
  // Where there was no decision, the result names the code.
  if (reason !== code) return stage.after
  return detail !== undefined && aboutBody.test(detail) ? 'policy' : stage.before
}

const resultSchema = z.looseObject({
  reason: z.string().optional().catch(undefined),
  detail: z.string().optional().catch(undefined),
  scope: z.array(z.string()).optional().catch(undefined),
})
export type RecordedResult = z.output<typeof resultSchema>

export const readResult = ({ result }: DecisionRecord): RecordedResult => {
  const parsed = resultSchema.safeParse(result)
  return parsed.success ? parsed.data : {}
}

/** Codes of policies' own decisions: everything else in this stage ends before there is one. */
const decided = new Set(['insufficient_scope', 'impersonation_denied', 'policy_denied', 'policy_error'])

export const isDecision = (refusal: Why['refusal']): boolean => refusal !== undefined && decided.has(refusal.code)

/** Where a request ended, and why, in a sentence. */
export const refusalOf = (record: DecisionRecord, input: RecordedInput): Why['refusal'] => {
  if (record.verdict === 'allowed') return undefined
  const result = readResult(record)
  const code = record.code ?? result.reason ?? 'client_gone'
  const because = sentences[code as ProblemCode]?.({ record, input, result }) ?? usual(code, record.detail)
  return { stage: stageOfRefusal(code, record, result), code, because }
}

/** The title of a code, or the client's own end. */
const usual = (code: string, detail: string | undefined): string => {
  if (detail !== undefined) return detail
  if (Object.hasOwn(problems, code)) return problems[code as ProblemCode][1]
  return code === 'client_gone' ? 'The client went away before there was an answer.' : `The gateway says ${code}.`
}

interface Told {
  record: DecisionRecord
  input: RecordedInput
  result: RecordedResult
}

/** Undefined where the record does not say enough. */
const sentences: Partial<Record<ProblemCode, (told: Told) => string | undefined>> = {
  not_found: ({ record, input: { request } }) =>
    record.route !== undefined
      ? `The route ${record.route} has no upstream: it is for forward-auth and ext_authz only.`
      : request?.path && `No route takes ${request.method} ${request.host ?? ''}${request.path}.`,
  insufficient_scope({ record, input, result }) {
    const missing = missingScopes(input, result)
    return missing.length === 0
      ? undefined
      : `The token lacks ${missing.join(', ')}, which the route ${record.route} needs.`
  },
  impersonation_denied({ record, input: { actor, subject, route } }) {
    if (actor?.id === undefined || subject?.id === undefined) return undefined
    const may = impersonations[String(route?.['impersonation'])] ?? 'does not let anybody do this so'
    return `${actor.id} acts for ${subject.id}, and the route ${record.route} ${may}.`
  },
  policy_denied: ({ record, result: { reason, detail } }) =>
    `The policy ${record.path} says no: ${reason ?? 'policy_denied'}${detail === undefined ? '.' : `, "${detail}"`}`,
  policy_error: ({ record }) =>
    record.error && `The policy ${record.path} gave no decision, which denies: ${record.error.message}.`,
}

const impersonations: Readonly<Record<string, string>> = {
  deny: 'lets nobody act for somebody else',
  'read-only': 'lets those who act for somebody else only read',
}

/** Of those that the policy named, or the route asks for. Empty when masks leave it open. */
export const missingScopes = ({ route, token }: RecordedInput, { scope }: RecordedResult): string[] => {
  const held = token?.scopes
  if (!held) return []
  return [...new Set([...(scope ?? []), ...(route?.scopes ?? [])])].filter((one) => !held.includes(one))
}
