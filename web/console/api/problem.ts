/** What the server says of a request that it refuses; the two forms of problems of ours become one. */
export class Problem extends Error {
  readonly code: string
  readonly status: number
  readonly title: string
  readonly detail: string | undefined
  readonly requestId: string | undefined
  /** What is wrong with members of the body, by path: `oidcClientMetadata.redirectUris.0`. */
  readonly issues: readonly Issue[]
  readonly data: Readonly<Record<string, unknown>>

  constructor({ status, requestId, body }: { status: number; requestId?: string | undefined; body: unknown }) {
    const { code = '', title, message, detail, details, instance, data } = Object(body) as Partial<Document>
    const sentence = title ?? message ?? 'The server gave no reason.'
    super(detail ?? details ?? sentence)
    this.code = code
    this.status = status
    this.title = sentence
    this.detail = detail ?? details
    this.requestId = instance ?? requestId
    this.data = { ...Object(body), ...Object(data) }
    this.issues = Array.isArray(this.data['issues']) ? this.data['issues'] : []
  }
}

export interface Issue {
  path: string
  message: string
}

interface Document {
  code: string
  title: string
  message: string
  detail: string
  details: string
  instance: string
  data: unknown
}

/** The server could not be reached, or did not answer as it does. */
export const unreachable = (cause: unknown): Problem => {
  const problem = new Problem({
    status: 0,
    body: { code: 'console.unreachable', title: 'The server cannot be reached.', detail: 'Try again in a moment.' },
  })
  problem.cause = cause
  return problem
}

/** The person may not ask for it, so it was not asked. */
export const notAllowed = (reason: string): Problem =>
  new Problem({ status: 403, body: { code: 'console.not_allowed', title: reason } })

export const isProblem = (error: unknown, code?: string): error is Problem =>
  error instanceof Problem && (code === undefined || error.code === code)
