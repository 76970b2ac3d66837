import { isDatabaseUnavailable } from '../../platform/database/database-unavailable.ts'
import { AppError } from '../../platform/problem.ts'
import { FormError } from '../base/read-form.ts'
import type { PageProblem } from './error.ts'

/** What a request is answered with instead of going on. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: PageProblem
  readonly status: number
  readonly headers: Record<string, string>

  constructor(
    problem: PageProblem,
    status: number,
    { headers = {}, cause }: { headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(problem, { cause })
    this.problem = problem
    this.status = status
    this.headers = headers
  }
}

/** What people are told of an error. */
export const refusalOf = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  if (error instanceof FormError) {
    // What is left of the body is not worth reading.
    const headers: Record<string, string> = error.status === 413 ? { Connection: 'close' } : {}
    return new Refusal('invalid_form', error.status, { headers })
  }
  if (isDatabaseUnavailable(error)) {
    return new Refusal('temporarily_unavailable', 503, { headers: { 'Retry-After': '5' }, cause: error })
  }
  if (error instanceof AppError && error.status === 503) {
    return new Refusal('temporarily_unavailable', 503, { headers: error.headers })
  }
  return new Refusal('server_error', 500, { cause: error })
}
