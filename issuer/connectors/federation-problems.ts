import { type ProblemCode, problem } from '../base/errors/problems.ts'
import type { FederationError } from './federation.ts'

const codes: Readonly<Record<FederationError['reason'], ProblemCode>> = {
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

/** What callers of an API are told of a provider that proves nothing. Particulars stand in the audit trail. */
export const federationProblem = (reason: FederationError['reason'], cause?: unknown) =>
  problem(codes[reason], { cause })
