import { type ProblemCode, problem } from '../base/errors/problems.ts'
import { FederationError, type FederationFault } from './providers/federation-error.ts'

const codes: Record<FederationFault, ProblemCode> = {
  connector_not_found: 'entity.not_found',
  denied: 'connector.authorization_failed',
  provider_error: 'connector.authorization_failed',
  invalid_response: 'connector.authorization_failed',
  invalid_id_token: 'connector.authorization_failed',
  subject_mismatch: 'connector.authorization_failed',
  unavailable: 'connector.provider_unavailable',
  target_not_allowed: 'connector.target_not_allowed',
  misconfigured: 'connector.invalid_config',
}

/** What the Management API says of it; any other error as it is. */
export const federationProblem = (error: unknown): unknown =>
  error instanceof FederationError
    ? problem(codes[error.reason], { detail: error.message, data: { reason: error.reason } })
    : error

/** The problems that `federationProblem` makes. */
export const federationProblems = [
  'entity.not_found',
  'connector.authorization_failed',
  'connector.provider_unavailable',
  'connector.target_not_allowed',
  'connector.invalid_config',
] as const satisfies readonly ProblemCode[]

export const asProblems = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw federationProblem(error)
  }
}
