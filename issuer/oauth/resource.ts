import { OAuthError } from '../../platform/problem.ts'

/** A resource that tokens can be issued for (RFC 8707). */
export interface Resource {
  id: string
  /** The `aud` of its tokens. */
  indicator: string
  /** In seconds. */
  accessTokenTtl: number
}

/** RFC 8707 §2: an absolute URI without a fragment. */
export const isIndicator = (text: string): boolean =>
  !text.includes('#') && /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text)

const looseForm = (indicator: string): string => {
  const lower = indicator.toLowerCase()
  // Parsing drops default ports and dot segments.
  return (URL.canParse(lower) ? new URL(lower).href : lower).replace(/\/+$/, '')
}

/** The registered indicator that differs from `asked` only by case, port or trailing slash. */
export const nearestIndicator = (asked: string, registered: readonly string[]): string | undefined => {
  const wanted = looseForm(asked)
  return registered.find((indicator) => looseForm(indicator) === wanted)
}

export const unknownResource = (nearest: string | undefined): OAuthError =>
  new OAuthError(
    'invalid_target',
    nearest === undefined
      ? 'The resource is not registered.'
      : `The resource is not registered; indicators must match exactly. Did you mean ${nearest} ?`,
  )

export const malformedResource = (): OAuthError =>
  new OAuthError('invalid_target', 'The resource must be an absolute URI without a fragment.')
