import type { IncomingMessage } from 'node:http'

/** The cookies of the pages (RFC 6265bis). None of them is read by a script, none leaves the issuer's own host. */
const names = ['session', 'browser', 'device'] as const
export type CookieName = (typeof names)[number]

export interface Cookies {
  /** Undefined when there is none, or when two have the name: then somebody else may have set one. */
  read(request: IncomingMessage, name: CookieName): string | undefined
  /** A `Set-Cookie` line. Without `maxAge`, in seconds, it ends with the browser. */
  set(name: CookieName, value: string, options?: { maxAge?: number | undefined }): string
  clear(name: CookieName): string
}

/** Of our own making: 256 bits in base64url. */
const valueForm = /^[\w-]{43}$/

/** `secure`: the issuer is reached over https. Without it the prefix `__Host-` is impossible. */
export const createCookies = ({ secure }: { secure: boolean }): Cookies => {
  const prefix = secure ? '__Host-surrogate_' : 'surrogate_'
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return {
    read(request, name) {
      const start = `${prefix}${name}=`
      const found = (request.headers.cookie ?? '')
        .split(';')
        .map((part) => part.trim())
        .filter((part) => part.startsWith(start))
        .map((part) => part.slice(start.length))
      const [value] = found
      return found.length === 1 && value !== undefined && valueForm.test(value) ? value : undefined
    },
    set: (name, value, { maxAge } = {}) =>
      `${prefix}${name}=${value}${attributes}${maxAge === undefined ? '' : `; Max-Age=${maxAge}`}`,
    clear: (name) => `${prefix}${name}=${attributes}; Max-Age=0`,
  }
}
