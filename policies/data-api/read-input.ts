import { invalid } from './api-error.ts'

/**
 * JSON of a caller. As in OPA the last of several members of one name counts, and invalid UTF-8 becomes U+FFFD. Throws
 * `ApiError`, also for what would reach the rules as something else: whole numbers beyond 2^53, halves of a character.
 */
export const parseJson = (text: string, what: string): unknown => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid(`${what} is not JSON`)
  }
  const inexact = mayBeInexact.test(text) && findInexact(value)
  if (inexact) throw invalid(`${what} holds ${inexact}`)
  return value
}

/** Sixteen digits, an exponent of two, an escaped surrogate: rare, so that the values are seldom looked at. */
const mayBeInexact = /\d{16}|[eE]\+?\d\d|\\u[dD][89a-fA-F]/

const findInexact = (root: unknown): string | undefined => {
  // Not recursive: what a caller nests must not overflow our stack.
  const rest: unknown[] = [root]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'number' && !isExact(value)) return 'a number that is not exact here: send it as a string'
    if (typeof value === 'string' && !value.isWellFormed()) return 'half of a character (an unpaired surrogate)'
    if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) rest.push(name, member)
    }
  }
  return undefined
}

const isExact = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))

/**
 * The body of `POST /v1/data/…`: `{"input": …}`, or nothing. Undefined without input; null counts as none, as in OPA.
 */
export const inputOfBody = (text: string): unknown => {
  if (text.trim() === '') return undefined
  const body = parseJson(text, 'the body')
  if (body === null) return undefined
  if (typeof body !== 'object' || Array.isArray(body))
    throw invalid('the body must be a JSON object with the member "input"')
  return Object.hasOwn(body, 'input') ? ((body as { input: unknown }).input ?? undefined) : undefined
}
