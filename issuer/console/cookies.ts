import type { IncomingMessage } from 'node:http'

/** The cookies of the console (RFC 6265bis). No script reads them. */
export interface ConsoleCookies {
  /** Undefined when there is none, or when two have the name: then somebody else may have set one. */
  session(request: IncomingMessage): string | undefined
  setSession(value: string): string
  clearSession(): string
  /** What the browser keeps of the sign-in with this state. Tabs have one each. */
  signIn(request: IncomingMessage, state: string): string | undefined
  setSignIn(state: string, value: string): string
  clearSignIn(state: string): string
  /** Ends those that would be too many. */
  clearExcess(request: IncomingMessage): string[]
}

/** In seconds. The session's own rows say when it is over; the cookie never outlives them. */
const sessionSeconds = 8 * 3_600
export const signInSeconds = 600
const maxSignIns = 5

/** 256 bits in base64url. */
const valueForm = /^[\w-]{43}$/

/**
 * `secure`: the console is reached over https; without it the prefix `__Host-` is impossible. Ports share cookies, so a
 * console on a port of its own has a name of its own.
 */
export const createConsoleCookies = (options: { secure: boolean; port: number | undefined }): ConsoleCookies => {
  const name = `${options.secure ? '__Host-' : ''}surrogate-console${options.port === undefined ? '' : `-${options.port}`}`
  const attributes = (site: 'Strict' | 'Lax', maxAge: number) =>
    `; Path=/; HttpOnly; SameSite=${site}${options.secure ? '; Secure' : ''}; Max-Age=${maxAge}`
  // The rest of the state is in the value's seal.
  const signInName = (state: string) => `${name}-sign-in-${state.slice(0, 16)}`

  const pairsOf = ({ headers }: IncomingMessage) =>
    (headers.cookie ?? '').split(';').map((pair) => {
      const [found = '', ...value] = pair.trim().split('=')
      return { found, value: value.join('=') }
    })
  const one = (request: IncomingMessage, wanted: string) => {
    const values = pairsOf(request).filter(({ found }) => found === wanted)
    return values.length === 1 ? values[0]?.value : undefined
  }
  const clearSignIn = (found: string) => `${found}=${attributes('Lax', 0)}`

  return {
    session(request) {
      const value = one(request, name)
      return value !== undefined && valueForm.test(value) ? value : undefined
    },
    setSession: (value) => `${name}=${value}${attributes('Strict', sessionSeconds)}`,
    clearSession: () => `${name}=${attributes('Strict', 0)}`,
    signIn: (request, state) => (valueForm.test(state) ? one(request, signInName(state)) : undefined),
    // An identity provider elsewhere may send the browser back, so it cannot be strict.
    setSignIn: (state, value) => `${signInName(state)}=${value}${attributes('Lax', signInSeconds)}`,
    clearSignIn: (state) => clearSignIn(signInName(state)),
    clearExcess: (request) =>
      pairsOf(request)
        .map(({ found }) => found)
        .filter((found) => found.startsWith(`${name}-sign-in-`) && /^[\w-]+$/.test(found))
        .slice(maxSignIns - 1)
        .map(clearSignIn),
  }
}
