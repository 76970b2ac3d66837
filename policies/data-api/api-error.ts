/** The codes of OPA's REST API that ours answers. */
export type ApiErrorCode =
  | 'invalid_parameter'
  | 'internal_error'
  | 'undefined_document'
  | 'resource_not_found'
  | 'unauthorized'

/** An answer that is an error, in the shape of OPA's REST API. The message is written here, and for the caller. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ApiErrorCode
  /** Further header fields, such as `Allow`. */
  readonly fields: readonly string[]
  /** What went wrong within an evaluation. */
  readonly errors: readonly { code: string; message: string }[] | undefined

  constructor(
    status: number,
    code: ApiErrorCode,
    message: string,
    options: { fields?: readonly string[]; errors?: ApiError['errors'] } = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.fields = options.fields ?? []
    this.errors = options.errors
  }
}

export const invalid = (message: string) => new ApiError(400, 'invalid_parameter', message)

export const notFound = (message: string) => new ApiError(404, 'resource_not_found', message)

/** RFC 9110 §15.5.6: with the methods that there are. */
export const methodNotAllowed = (allowed: readonly string[], message: string) =>
  new ApiError(405, 'invalid_parameter', message, { fields: ['Allow', allowed.join(', ')] })
