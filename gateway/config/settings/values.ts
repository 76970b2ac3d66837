import { isIP } from 'node:net'
import { z } from 'zod'
import { parseDuration } from '../../../platform/config.ts'
import { Secret } from '../../../platform/secret.ts'
import { pathEqualitySchema } from '../../../policies/path-equality.ts'
import { parseHost } from '../../routing/host.ts'

/** The kinds of values that stand in `gateway.yaml`. */

/** The same message when something of another type stands there, or nothing. */
const oneMessage = (message: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? message.replace('must be', 'is needed:') : message),
})

/** As it is written in the file, in the largest unit that needs no fraction: `1h`. */
const durationText = (ms: number): string => {
  if (ms === 0) return '0s'
  const [size, unit] = durationUnits.find(([size]) => ms % size === 0)!
  return `${ms / size}${unit}`
}

const durationUnits = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
] as const

/** ms; `0s` where `min` is 0. A default is written as in the file: `.prefault('5s')`. */
export const duration = (min: number, max: number) => {
  const message = `must be a duration from ${durationText(min)} to ${durationText(max)}, such as 500ms, 5s or 10m`
  return z
    .string(oneMessage(message))
    .meta({ pattern: '^\\d{1,9}(?:ms|s|m|h|d)$' })
    .transform((text, context) => {
      const ms = parseDuration(text)
      if (ms !== undefined && ms >= min && ms <= max) return ms
      context.addIssue(message)
      return z.NEVER
    })
}

/** ms as well, for what is told to others in seconds. */
export const wholeSeconds = (min: number, max: number) =>
  duration(min, max).refine((ms) => ms % 1_000 === 0, 'must be whole seconds')

const units = { B: 1, kB: 1_024, MB: 1_048_576, GB: 1_073_741_824 }

/** Bytes, as a number or with a unit. A default is written as in the file: `.prefault('256kB')`. */
export const bytes = (min: number, max: number) => {
  const message = `must be from ${min} to ${max} bytes, such as 65536, 64kB or 1MB`
  return z
    .union([z.number(), z.string().meta({ pattern: '^\\d{1,15}(?:B|kB|MB|GB)?$' })], oneMessage(message))
    .transform((value, context) => {
      const [, count, unit = 'B'] = /^(\d{1,15})(B|kB|MB|GB)?$/.exec(String(value)) ?? []
      const size = Number(count) * units[unit as keyof typeof units]
      if (size >= min && size <= max) return size
      context.addIssue(message)
      return z.NEVER
    })
}

/** From 0 to 1. A default is written as in the file: `.prefault('50%')`. */
export const share = z
  .string('must be a share from 0% to 100%, such as 20%')
  .meta({ pattern: '^\\d{1,3}(?:\\.\\d{1,4})?%$' })
  .transform((text, context) => {
    const [, percent] = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(text) ?? []
    if (percent !== undefined && Number(percent) <= 100) return Number(percent) / 100
    context.addIssue('must be a share from 0% to 100%, such as 20%')
    return z.NEVER
  })

export const secret = z
  .string()
  .min(1)
  .transform((text) => new Secret(text))

export const port = z
  .union([z.number(), z.string().regex(/^\d+$/).transform(Number)], 'must be a port number')
  .pipe(z.number().int().min(0).max(65_535))

/** Whether a place is an address rather than a file. */
export const isUrl = (text: string): boolean => /^https?:/i.test(text)

export const httpUrl = z
  .string()
  .meta({ pattern: '^https?://' })
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (!url || !/^https?:$/.test(url.protocol)) return false
    return [url.username, url.password, url.search, url.hash].every((part) => part === '')
  }, 'must be an http or https URL without credentials, query and fragment')

/** `10.0.0.0/8`, `fd00::/8`, or a single address. */
export const isNetwork = (text: string): boolean => {
  const [address = '', prefix, ...rest] = text.split('/')
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  if (bits === 0 || rest.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

export const network = z.string().refine(isNetwork, 'must be an address or a CIDR such as 10.0.0.0/8')

/** RFC 9110 §9.1, without the two that a gateway must not serve. */
export const method = z
  .string()
  .regex(/^[A-Z][A-Z-]{0,31}$/, 'must be a method in capital letters')
  .refine((name) => name !== 'CONNECT' && name !== 'TRACE', 'CONNECT and TRACE are not served')

export const host = z.string().transform((text, context) => {
  const canonical = parseHost(text, 'http')
  if (canonical !== undefined) return canonical
  context.addIssue('must be a host name or address with an optional port')
  return z.NEVER
})

/** `scheme://host[:port]` without a default port, as browsers serialise it; `*.` may stand for the leftmost names. */
export const isOriginPattern = (text: string): boolean => {
  if (text === '*') return true
  const plain = text.replace(/^(https?:\/\/)\*\./, '$1')
  return (
    !plain.includes('*') &&
    URL.canParse(plain) &&
    /^https?:$/.test(new URL(plain).protocol) &&
    new URL(plain).origin === plain
  )
}

export const originPattern = z
  .string()
  .refine(isOriginPattern, 'must be an origin such as https://app.example.test, https://*.example.test, or *')

const credentialHeaders =
  /^(?:(?:proxy-)?authorization|cookie2?|dpop|(?:.*-)?(?:auth|jwt|session(?:-?id)?|signature)(?:-.*)?|.*(?:token|secret|passw|api-?key|(?:access|private|subscription|functions)-key|credential|assertion).*)$/

/** Takes lower-case names. */
export const isCredentialHeader = (name: string): boolean => credentialHeaders.test(name)

export const policyHeader = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name')
  .transform((name) => name.toLowerCase())
  .refine((name) => !isCredentialHeader(name), 'a header that carries credentials is never handed to a policy')

/** RFC 6749 §3.3. */
export const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope name')

/** RFC 9470 §3, OIDC Core §2: one of a list that is separated by spaces, in a quoted string. */
export const acr = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'must be a value of the claim acr')

export const identifier = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, dots, dashes, at most 64')

/** RFC 9110 §5.1, as the CORS protocol spells lists of them. */
export const fieldName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'must be a header name')
  .transform((name) => name.toLowerCase())

/** Which spellings of a path an API takes for the same. */
export const pathEquality = z.strictObject({
  case: pathEqualitySchema.shape.case.describe(
    '`insensitive`: the API serves `/A` and `/a` with one handler, as Express and IIS do.',
  ),
  trailingSlash: pathEqualitySchema.shape.trailingSlash.describe(
    '`ignore`: the same of `/a/` and `/a`, as Express does.',
  ),
})
