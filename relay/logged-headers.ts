/**
 * What the log of attempts keeps of a receiver's headers. Shown to customers: no credentials, and text that Postgres
 * can hold.
 */

// Headers in which a receiver may send credentials.
const redacted = new Set([
  'set-cookie',
  'authorization',
  'proxy-authenticate',
  'www-authenticate',
  'authentication-info',
])
const maxHeaders = 64

/**
 * The headers as they are logged: values without NUL, which Postgres cannot hold, and `location` without its query and
 * userinfo.
 */
export const loggedHeaders = (headers: Record<string, string | string[] | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers)
      .slice(0, maxHeaders)
      .map(([name, value]) => [name, shown(name, value)]),
  )

const shown = (name: string, value: string | string[] | undefined) => {
  if (redacted.has(name)) return '[redacted]'
  const text = (Array.isArray(value) ? value.join(', ') : (value ?? '')).replaceAll('\u0000', '').toWellFormed()
  return name === 'location' ? plainLocation(text) : text.slice(0, 1_024)
}

const plainLocation = (text: string) => {
  if (!URL.canParse(text, 'https://relative.invalid')) return '[unreadable]'
  const url = new URL(text, 'https://relative.invalid')
  return url.hostname === 'relative.invalid' ? url.pathname : url.origin + url.pathname
}
