import { STATUS_CODES } from 'node:http'

/** Each part has one: every error that its callers may see, by a stable code. */
export type ProblemTable = Readonly<Record<string, readonly [status: number, title: string]>>

export interface ProblemDetails {
  /** For people: what exactly was wrong with this request. Never the message of an error we did not write. */
  detail?: string
  /** For programs: members that help to act on it. */
  data?: unknown
  /** Another status than the table's, where a specification asks for it. */
  status?: number
  headers?: Record<string, string>
  cause?: unknown
}

/**
 * An error with a row in the problem table of its part. `status` 4xx: the caller's fault; 5xx: ours, logged with its
 * cause.
 */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: string
  readonly status: number
  readonly title: string
  readonly detail: string | undefined
  readonly data: unknown
  readonly headers: Record<string, string>

  constructor(code: string, [tableStatus, title]: ProblemTable[string], details: ProblemDetails = {}) {
    const { detail, data, status = tableStatus, headers = {}, cause } = details
    super(detail ?? title, { cause })
    this.code = code
    this.status = status
    this.title = title
    this.detail = detail
    this.data = data
    this.headers = headers
  }
}

/** Makes the errors of a part from the codes of its table. */
export const problemsOf =
  <Table extends ProblemTable>(table: Table) =>
  (code: keyof Table & string, details?: ProblemDetails): AppError =>
    new AppError(code, table[code] as Table[keyof Table], details)

/** A problem document (RFC 9457) of the gateway. `instance` is the request id. */
export const problemJson = (error: AppError, instance: string) => ({
  type: `urn:surrogate:problem:${error.code}`,
  title: error.title,
  status: error.status,
  code: error.code,
  ...(error.detail === undefined ? {} : { detail: error.detail }),
  instance,
})

export const statusText = (status: number): string => STATUS_CODES[status] ?? String(status)
