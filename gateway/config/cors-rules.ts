import type { CorsSettings } from './settings/route.ts'

/** The rules of one route, ready to use. */
export interface CorsRules {
  /** What `access-control-allow-origin` says to this origin; undefined: it is refused. */
  allowed(origin: string | undefined): string | undefined
  /** What stands on the answer to a preflight: permissions only for an origin that has some. */
  preflightFields(origin: string): Record<string, string>
  /** What stands on the actual answer, whoever gives it. */
  answerFields(origin: string | undefined): Record<string, string>
}

const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
/** Longer than any host name with scheme and port. */
const maxOriginLength = 512

const matcher = (origins: readonly string[]): ((origin: string) => boolean) => {
  const exact = new Set(origins.filter((origin) => !origin.includes('*')))
  // The dot belongs to the suffix: `https://*.example.test` must not match https://evil-example.test.
  const below = origins.flatMap((origin) => {
    const [scheme, suffix] = origin.split('*')
    return scheme && suffix ? [{ scheme, suffix }] : []
  })
  const labels = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/
  return (origin) =>
    exact.has(origin) ||
    below.some(
      ({ scheme, suffix }) =>
        origin.startsWith(scheme) &&
        origin.endsWith(suffix) &&
        labels.test(origin.slice(scheme.length, origin.length - suffix.length)),
    )
}

/** RFC 9449 §8.2: without these a script could neither send a proof nor learn what the next one needs. */
export const corsWithDpop = (settings: CorsSettings): CorsSettings => ({
  ...settings,
  headers: [...new Set([...settings.headers, 'authorization', 'dpop'])],
  exposeHeaders: [...new Set([...settings.exposeHeaders, 'www-authenticate', 'dpop-nonce'])],
})

export const createCorsRules = (settings: CorsSettings, routeMethods: readonly string[]): CorsRules => {
  const { origins, credentials } = settings
  const any = origins.includes('*')
  const matches = matcher(origins)
  const methods = settings.methods.length > 0 ? settings.methods : routeMethods.length > 0 ? routeMethods : usualMethods
  // With `*` the answer is the same for everybody, and caches may share it.
  const vary: Record<string, string> = any ? {} : { vary: 'Origin' }
  const permission: Record<string, string> = credentials ? { 'access-control-allow-credentials': 'true' } : {}
  const onPreflight = {
    'access-control-allow-methods': methods.join(', '),
    ...(settings.headers.length > 0 && { 'access-control-allow-headers': settings.headers.join(', ') }),
    'access-control-max-age': String(Math.floor(settings.maxAge / 1000)),
  }
  const onAnswer = {
    ...(settings.exposeHeaders.length > 0 && { 'access-control-expose-headers': settings.exposeHeaders.join(', ') }),
  }

  const allowed = (origin: string | undefined): string | undefined => {
    if (origin === undefined || origin.length > maxOriginLength) return undefined
    if (any) return '*'
    return matches(origin) ? origin : undefined
  }
  const granted = (origin: string | undefined, more: Record<string, string>): Record<string, string> => {
    const allowOrigin = allowed(origin)
    if (allowOrigin === undefined) return vary
    return { ...vary, 'access-control-allow-origin': allowOrigin, ...permission, ...more }
  }

  return {
    allowed,
    preflightFields: (origin) => granted(origin, onPreflight),
    answerFields: (origin) => granted(origin, onAnswer),
  }
}
